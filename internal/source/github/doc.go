// SPDX-License-Identifier: Apache-2.0

// Package github gets artifacts from releases at GitHub, and at servers with its API.
package github
