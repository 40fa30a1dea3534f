// SPDX-License-Identifier: Apache-2.0

// Package layout says how artifacts are laid out where they are published: which layer of a
// manifest is the content, and which files a bundle has. It is pure.
package layout
