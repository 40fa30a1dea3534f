// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
)

// shot is what the file system says of an artifact's path, without its files' content.
type shot struct {
	name      string
	kind      artifact.Kind
	directory bool
	files     []statted       // sorted by name, relative to the directory; of an archive, the archive itself
	walked    []string        // directories and links met on the way, relative to the root
	newest    time.Time       // of the files
	beside    map[string]shot // directories that a chart may depend on, by path
	err       error           // why it isn't a chart

	state string // changes when any of the above does
}

type statted struct {
	name string
	info fs.FileInfo
}

// seal computes the state.
func (s shot) seal() shot {
	var state strings.Builder
	if s.err != nil {
		fmt.Fprintln(&state, s.err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.beside)) {
		other := s.beside[name]
		fmt.Fprintf(&state, "%q %s\n", name, other.state)
		s.walked = append(append(s.walked, name), other.walked...)
		if other.newest.After(s.newest) {
			s.newest = other.newest
		}
	}
	for _, file := range s.files {
		fmt.Fprintf(&state, "%q %s %d %d %d\n", file.name, file.info.Mode(), file.info.Size(), file.info.ModTime().UnixNano(), inode(file.info))
		if file.info.ModTime().After(s.newest) {
			s.newest = file.info.ModTime()
		}
	}
	sum := sha256.Sum256([]byte(state.String()))
	s.state = hex.EncodeToString(sum[:])
	return s
}

// shoot looks at the path: an archive, or a directory; of a chart, one with a Chart.yaml,
// and the directories that it depends on.
func shoot(root *os.Root, at spot, limits artifact.Limits) shot {
	taken := shootOne(root, at, limits)
	if taken.err == nil && taken.directory && !at.kind.Verbatim() {
		taken.lookBeside(root, limits)
	}
	return taken.seal()
}

// lookBeside looks at the directories that the chart depends on, and those that these
// depend on.
func (s *shot) lookBeside(root *os.Root, limits artifact.Limits) {
	for charts := []shot{*s}; len(charts) > 0; charts = charts[1:] {
		for _, name := range charts[0].dependsOn(root) {
			if _, known := s.beside[name]; known || name == s.name || len(s.beside) == dependency.Max {
				continue
			}
			if s.beside == nil {
				s.beside = map[string]shot{}
			}
			other := shootOne(root, spot{path: name}, limits).seal()
			s.beside[name] = other
			if other.err == nil && other.directory {
				charts = append(charts, other)
			}
		}
	}
}

// dependsOn reads which directories beside it the chart depends on.
func (s shot) dependsOn(root *os.Root) []string {
	var files []artifact.File
	for _, file := range s.files {
		if file.name != artifact.ChartFile && file.name != dependency.RequirementsFile {
			continue
		}
		if data, err := readFile(root, path.Join(s.name, file.name), dependency.MaxChartFile); err == nil { // else nothing is looked up in it
			files = append(files, artifact.File{Name: file.name, Data: artifact.TrimBOM(data)})
		}
	}
	return dependency.BesideOf(s.name, files)
}

// shootOne looks at one path.
func shootOne(root *os.Root, at spot, limits artifact.Limits) shot {
	name, taken := at.path, shot{name: at.path, kind: at.kind}
	info, err := root.Stat(name)
	switch {
	case err != nil:
		taken.err = pathError(root, name, err)
	case info.IsDir():
		taken.directory = true
		taken.err = taken.walk(root, limits)
	case !info.Mode().IsRegular():
		taken.err = irregular(name)
	default:
		taken.files = []statted{{name, info}}
		taken.err = at.kind.CheckFile(name)
	}
	return taken
}
