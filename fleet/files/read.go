// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// maxFile is how many bytes a file may have: more is no kubeconfig.
const maxFile = 1 << 20

// found is a context of a file.
type found struct {
	file       string
	kubeconfig []byte
	problem    string // why the file can't be read any more
}

// read returns the contexts of all files that match. While a file can't be read, they are those that
// were last read of it.
func (s *Source) read(log logr.Logger) map[string]found {
	all, known := map[string]found{}, map[string]map[string][]byte{}
	for _, file := range s.files(log) {
		contexts, err := contextsOf(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		problem := ""
		if s.failed(log, file, err) {
			contexts, problem = s.known[file], "can't be read; see the log of the manager"
		}
		known[file] = contexts
		for name, kubeconfig := range contexts {
			if _, taken := all[name]; !taken && s.matches(name) {
				all[name] = found{file: file, kubeconfig: kubeconfig, problem: problem}
			}
		}
	}
	s.known = known
	return all
}

// files returns the named files, and those of the named directories, in order.
func (s *Source) files(log logr.Logger) []string {
	var files []string
	for _, path := range s.options.Paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path) // that it can't be read is found out there
			continue
		}
		entries, err := os.ReadDir(path)
		if s.failed(log, path, err) {
			entries = s.entries[path]
		}
		s.entries[path] = entries
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") && !entry.IsDir() {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	return files
}

// failed reports whether a path could not be read. It logs each cause once.
func (s *Source) failed(log logr.Logger, path string, err error) bool {
	if err == nil {
		delete(s.failing, path)
		return false
	}
	if s.failing[path] != err.Error() {
		s.failing[path] = err.Error()
		log.Error(err, "Could not read kubeconfigs; their clusters stay as they are", "path", path)
	}
	return true
}

func contextsOf(file string) (map[string][]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file of at most %d KiB", file, maxFile>>10)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	contexts, err := kubeconfig.Split(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return contexts, nil
}
