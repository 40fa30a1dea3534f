// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// snapshot is what the file system says of an artifact's path, without its files' content.
type snapshot struct {
	name      string
	kind      artifact.Kind
	directory bool
	files     []statted // sorted by name, relative to the directory; of an archive, the archive itself
	err       error     // why it isn't an artifact
}

type statted struct {
	name string
	info fs.FileInfo
}

// take looks at the path: an archive, or a directory; of a chart, one with a Chart.yaml.
func take(root *os.Root, at spot, limits artifact.Limits) snapshot {
	taken := snapshot{name: at.path, kind: at.kind}
	info, err := root.Stat(at.path)
	switch {
	case err != nil:
		taken.err = pathError(root, at.path, err)
	case info.IsDir():
		taken.directory = true
		taken.err = taken.walk(root, limits)
	case !info.Mode().IsRegular():
		taken.err = irregular(at.path)
	default:
		taken.files = []statted{{at.path, info}}
		taken.err = at.kind.CheckFile(at.path)
	}
	return taken
}

// snapshots are those of an artifact's path and of a chart's neighbours.
type snapshots struct {
	paths  []string
	state  string    // changes when any of them does
	newest time.Time // of all files
}

// look takes the snapshots, which is cheap: no file but .helmignore is read.
func (t *Tree) look(at spot, paths []string) snapshots {
	seen := snapshots{paths: paths}
	hash := sha256.New()
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		fmt.Fprintln(hash, rootError(err))
		paths = nil
	} else {
		defer closeRead(root)
	}
	for _, name := range paths {
		taken := take(root, spot{path: name, kind: at.kind}, t.limits)
		fmt.Fprintf(hash, "%q %v\n", name, taken.err)
		for _, file := range taken.files {
			fmt.Fprintf(hash, "%q %s %d %d %d\n", file.name, file.info.Mode(), file.info.Size(), file.info.ModTime().UnixNano(), inode(file.info))
			if file.info.ModTime().After(seen.newest) {
				seen.newest = file.info.ModTime()
			}
		}
	}
	seen.state = hex.EncodeToString(hash.Sum(nil))
	return seen
}

// readDirectory reads the files of the directory.
func (s snapshot) readDirectory(root *os.Root, limits artifact.Limits) ([]artifact.File, error) {
	files := make([]artifact.File, 0, len(s.files))
	total := limits.TotalBytes
	for _, file := range s.files {
		data, err := readFile(root, path.Join(s.name, file.name), limits.FileBytes)
		if err != nil {
			return nil, err
		}
		if total -= int64(len(data)); total < 0 {
			return nil, failure.TooLarge("the directory's content", limits.TotalBytes)
		}
		files = append(files, artifact.File{Name: file.name, Data: artifact.TrimBOM(data)})
	}
	return files, nil
}

// isTransient reports whether the error may go away without a change of the path's state.
func isTransient(err error) bool {
	known, ok := errors.AsType[*failure.Error](err)
	return err != nil && (!ok || known.Reason == failure.SourceUnavailable || known.Reason == failure.ArtifactChanged)
}
