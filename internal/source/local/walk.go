// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// walk reads the files of a directory.
type walk struct {
	spot
	root   *os.Root
	limits artifact.Limits
	rules  *ignore.Rules

	entries int // seen
	bytes   int64
	files   []artifact.File // relative to the directory
}

// content returns an archive, or the files of a directory, sorted by name. Of a chart these are the files
// that Helm would package, with a Chart.yaml.
func (t *Tree) content(root *os.Root, at spot) (got artifact.Content, err error) {
	info, err := root.Stat(at.path)
	switch {
	case err != nil:
		return got, pathError(root, at.path, err)
	case info.Mode().IsRegular():
		if err = at.kind.CheckFile(at.path); err == nil {
			got.Archive, err = readFile(root, at.path, t.limits.ArchiveBytes)
		}
		return got, err
	case !info.IsDir():
		return got, irregular(at.path)
	}
	w := &walk{spot: at, root: root, limits: t.limits, rules: ignore.Empty()}
	if err = w.readRules(); err == nil {
		err = w.list(".")
	}
	slices.SortFunc(w.files, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	if err == nil && !at.kind.Verbatim() && artifact.Find(w.files, artifact.ChartFile) == nil {
		err = failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	got.Files = w.files
	return got, err
}

// readRules reads those of the chart's .helmignore, and adds Helm's own.
func (w *walk) readRules() error {
	if w.kind.Verbatim() {
		return nil
	}
	data, err := readFile(w.root, path.Join(w.path, ignore.HelmIgnore), artifact.MaxIgnoreFile)
	if missing, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || !missing.Wait) {
		return err
	}
	w.rules, err = artifact.IgnoreRules(data)
	return err
}

// list walks through one directory, but no further than the limits allow: so cycles of links
// end.
func (w *walk) list(name string) error {
	full := path.Join(w.path, name)
	directory, err := w.root.Open(full)
	if err != nil {
		return pathError(w.root, full, err)
	}
	defer closeRead(directory)
	entries, err := directory.ReadDir(w.limits.Entries - w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return pathError(w.root, full, err)
	}
	if w.entries += len(entries); w.entries > w.limits.Entries {
		return failure.New(failure.ArtifactTooLarge, "the directory has more than %d entries; take out what isn't needed", w.limits.Entries)
	}
	// In order, so that of several errors it is always the same that is told.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		// Kubernetes keeps names that start with two dots to itself: they hold
		// what the links in a volume point to, which would be in the chart twice.
		// And `git archive` packs no .git, either.
		if strings.HasPrefix(entry.Name(), "..") || w.kind.Verbatim() && entry.Name() == ".git" {
			continue
		}
		if err := w.add(path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// add adds an entry, with what is in it.
func (w *walk) add(name string) error {
	full := path.Join(w.path, name)
	info, err := w.root.Stat(full)
	if err != nil {
		return pathError(w.root, full, err)
	}
	if w.rules.Ignore(name, info) {
		return nil
	}
	if err := artifact.CheckName(name); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return w.list(name)
	case !info.Mode().IsRegular():
		return irregular(full)
	}
	data, err := readFile(w.root, full, w.limits.FileBytes)
	if err != nil {
		return err
	}
	if w.bytes += int64(len(data)); w.bytes > w.limits.TotalBytes {
		return failure.TooLarge("the directory's content", w.limits.TotalBytes)
	}
	w.files = append(w.files, artifact.File{Name: name, Data: artifact.TrimBOM(data)})
	return nil
}

// readFile reads a regular file of at most that many bytes.
func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	// Not blocking, as the file may have become a pipe that nobody writes to.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError(root, name, err)
	}
	defer closeRead(file)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return nil, irregular(name)
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, pathError(root, name, err)
	case int64(len(data)) > most:
		return nil, failure.TooLarge(failure.Quote(name), most)
	}
	return data, nil
}

// pathError words what the file system said of a name.
func pathError(root *os.Root, name string, err error) error {
	// os exports no error for a path that escapes; asking for one gives it.
	_, escapes := root.Lstat("..")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return failure.NotPublished("there is no %s; put it there, or correct the path", failure.Quote(name))
	case errors.Is(err, cause(escapes)), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return failure.New(failure.ArtifactRefused, "%s leads out of the artifact root, or can't be followed; put the file itself there", failure.Quote(name))
	}
	return failure.New(failure.SourceUnavailable, "%s can't be read: %w; see to it that the provider may read it", failure.Quote(name), cause(err))
}

func irregular(name string) error {
	return failure.New(failure.ArtifactRefused, "%s is neither a file nor a directory; put the file itself there, or take it out", failure.Quote(name))
}

// cause takes the path off a file system's error.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// closeRead closes what was only read from: there is nothing left to fail.
func closeRead(closer io.Closer) { _ = closer.Close() }
