// SPDX-License-Identifier: Apache-2.0

// Package render turns a chart, values and facts about a cluster into Kubernetes objects;
// kustomizations and plain manifests, too.
//
// Charts and templates are hostile input, and a Go template cannot be stopped once it runs.
// So every rendering happens in a worker: this very executable, started again with an empty
// environment, no right to open files or sockets, and a limit on memory. The parent kills it
// when a limit is passed; whatever happens in there is an [Error] of that one request.
//
// The way of a chart, a file for each step:
//
//	request ─pool─▶ process ─protocol─▶ worker: loadchart ▶ schema ▶ chart (Helm's engine,
//	with capabilities and generated; places and recall judge the latter) ▶ manifests ▶ patches ▶ hooks ─protocol─▶ Result
//
// A kustomization (kustomization ▶ manifests ▶ patches) and plain manifests go the
// same way, with the same limits.
package render
