// SPDX-License-Identifier: Apache-2.0

// Package quickstart follows docs/quick-start.md word by word, with control planes of test/controlplane in the place of kind
// and of Cluster API's Docker provider.
package quickstart
