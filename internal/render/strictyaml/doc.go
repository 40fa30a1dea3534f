// SPDX-License-Identifier: Apache-2.0

// Package strictyaml reads YAML, and refuses text that other parsers would read only in part: keys that are there
// twice, and documents behind the end of one.
package strictyaml
