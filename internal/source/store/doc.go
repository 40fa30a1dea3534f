// SPDX-License-Identifier: Apache-2.0

// Package store keeps archives in a directory, each under its digest, as they were
// fetched.
//
// The directory is all there is: nothing of it is held in memory, so there is
// nothing to rebuild after a restart, and several processes may use one directory
// at a time. Each operation holds on its own:
//
//   - an archive is written to a file of its own and renamed: who reads sees all of
//     it or nothing;
//   - what is read is compared with its digest, and is removed if it is something else;
//   - when it was used last is the file's time, so all processes agree on what is to
//     go, and what is in use stays.
//
// It is a cache: whatever fails, be it for a disk that is full, read-only or hangs, is
// at worst a download. The failure is logged once, and shown by a metric.
package store
