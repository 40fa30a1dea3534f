// SPDX-License-Identifier: Apache-2.0

// Package faulty serves what a good HTTP handler does, until it is told to fail: in
// one of the ways in which registries, repositories and what is between them do. It
// counts who asks for what, and can be stopped and started again at its address.
package faulty
