// SPDX-License-Identifier: Apache-2.0

// Package source says where charts come from, and reads them.
//
// Resolve and fetch are kept apart. Resolve is cheap and says which content a
// reference means now, as a digest; while nothing changed it costs no request and
// reads no file. Fetch gets the content that has the digest, checks the digest
// before it looks into the content, and checks everything in it before it hands
// it on. What was fetched, and what was refused, is remembered by its digest, and
// given to those who have shown that they may have it; see [grants].
//
// What is meant is a [reference.Reference]. Each kind of source is an [origin]: a directory
// tree of this machine ([artifactRoot]), the ConfigMaps and Secrets of the object's own
// namespace ([objects]), or another host ([remote]), which is a [place.Place]: packages oci,
// helm, github and web. A new kind is a new origin and a line in [Sources.origin]; a new
// protocol between hosts is a new package and a line in [places.of].
//
// Other hosts are visited by package guest, with credentials. Those that are slow are the
// concern of package flight; why something can't be had, and when to try again, that of
// package failure; and what is refused though a source gives it that of package refusal.
//
// All content is hostile until package artifact has unpacked it. Nothing is unpacked to
// disk; archives from other hosts are kept there as they are, by package store.
package source
