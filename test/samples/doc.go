// SPDX-License-Identifier: Apache-2.0

// Package samples compares samples of output on the pages with what the commands of the pages print. An API server has the objects that
// a file of testdata/ describes, with their statuses; nothing else runs. The first lines of a file name its samples, as
// [github.com/cluster-chandler/chandler/test/docs.Command.Name] does.
package samples
