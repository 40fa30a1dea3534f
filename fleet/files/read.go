// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// maxFile is how many bytes of a file are read: more is no kubeconfig.
const maxFile = 1 << 20

// found is a context of a file.
type found struct {
	file       string
	kubeconfig []byte
	problem    string // why the file can't be read any more
}

func (f found) same(o found) bool {
	return f.file == o.file && f.problem == o.problem && bytes.Equal(f.kubeconfig, o.kubeconfig)
}

// read returns the contexts of all files that match.
func (s *Source) read(log logr.Logger) map[string]found {
	all := map[string]found{}
	for _, file := range s.files(log) {
		contexts, err := contextsOf(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.report(log, file, err)
			maps.Copy(all, s.stay(file, "can't be read; see the log of the manager", all))
			continue
		}
		delete(s.failing, file)
		for _, name := range slices.Sorted(maps.Keys(contexts)) {
			if _, taken := all[name]; !taken && s.matches(name) {
				all[name] = found{file: file, kubeconfig: contexts[name]}
			}
		}
	}
	return all
}

// report logs why a path can't be read, once for each cause.
func (s *Source) report(log logr.Logger, path string, err error) {
	if s.failing[path] == err.Error() {
		return
	}
	s.failing[path] = err.Error()
	log.Error(err, "Could not read kubeconfigs; their clusters stay as they are", "path", path)
}

// stay returns what was last read of a file, but for contexts that another file has.
func (s *Source) stay(file, problem string, taken map[string]found) map[string]found {
	stay := map[string]found{}
	for name, f := range s.last {
		if _, elsewhere := taken[name]; f.file == file && !elsewhere {
			f.problem = problem
			stay[name] = f
		}
	}
	return stay
}

// files returns the named files, and those of the named directories, in order.
func (s *Source) files(log logr.Logger) []string {
	var files []string
	for _, path := range s.options.Paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			files = append(files, path) // that it can't be read is found out there
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			s.report(log, path, err)
			files = append(files, s.known(path)...)
			continue
		}
		delete(s.failing, path)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") && !entry.IsDir() {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	return files
}

// known returns the files of a directory that were read last.
func (s *Source) known(directory string) []string {
	var files []string
	for _, f := range s.last {
		if filepath.Dir(f.file) == filepath.Clean(directory) && !slices.Contains(files, f.file) {
			files = append(files, f.file)
		}
	}
	slices.Sort(files)
	return files
}

func contextsOf(file string) (map[string][]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	contexts, err := kubeconfig.Split(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return contexts, nil
}
