// SPDX-License-Identifier: Apache-2.0

package fleetwatch

// ListPages is listPages.
var ListPages = listPages
