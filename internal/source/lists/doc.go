// SPDX-License-Identifier: Apache-2.0

// Package lists keeps what is to be known of the versions that artifacts were published in,
// and bounds what reading them takes.
package lists
