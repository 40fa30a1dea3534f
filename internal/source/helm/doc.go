// SPDX-License-Identifier: Apache-2.0

// Package helm gets charts from classic Helm repositories: those with an index.yaml.
package helm
