// SPDX-License-Identifier: Apache-2.0

// Package repoindex reads the index.yaml of a classic Helm repository.
//
// An index is large (that of a busy repository has 20 MiB), written by anyone, and
// of each version of a chart only three fields are of use. Helm's own loader builds
// a tree of all of it, which takes ten to a hundred times its size. Here the index
// is read line by line, and only the lines of these fields are given to a YAML
// parser, version by version. That needs the layout in which every tool writes an
// index: mappings and lists in block style, or all of it in JSON. An index in
// another layout is refused.
package repoindex
