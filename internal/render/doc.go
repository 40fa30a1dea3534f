// SPDX-License-Identifier: Apache-2.0

// Package render turns a chart, values and facts about a cluster into Kubernetes objects;
// kustomizations and plain manifests, too.
//
// Charts and templates are hostile input, and a Go template cannot be stopped once it runs.
// So every rendering happens in a worker: this very executable, started again with an empty
// environment, no right to open files or sockets, and a limit on memory. This package is the
// manager's side: a pool of such processes. It kills a worker when a limit is passed. A fault in there is
// a [failure.Error] of that request alone.
//
// A job takes this way, a package for each step:
//
//	render ─protocol─▶ worker (in its sandbox) ─▶ chart, with generated    ┐
//	                                           ─▶ files (kustomizations)   ├─▶ manifest ─▶ patch ─▶ job.Result
//	                                           ─▶ values (and templates)
//
// The packages of the worker know nothing of the pool. Both share job and protocol.
package render
