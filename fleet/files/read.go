// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// maxFile is how many bytes a file may have: more is no kubeconfig.
const maxFile = 1 << 20

// content is what a file has for one context.
type content struct {
	fleet.Member        // its credentials, or why there are none
	text         string // that the Config of a trusted file was made of
}

// found is a context of a file.
type found struct {
	fleet.Member
	file, context string
}

// read returns the contexts of all files that match, by the name of the cluster. While a file can't be read, they are
// those that were last read of it.
func (s *Source) read(log logr.Logger) map[multicluster.ClusterName]found {
	all, known := map[multicluster.ClusterName]found{}, map[string]map[string]content{}
	for _, file := range s.files(log, s.options.Paths) {
		s.add(log, all, known, file, contextsOf)
	}
	for _, file := range s.files(log, s.options.TrustedPaths) {
		s.add(log, all, known, file, trustedContextsOf)
	}
	s.known = known
	return all
}

// add adds the contexts of a file, as a function reads them.
func (s *Source) add(
	log logr.Logger, all map[multicluster.ClusterName]found, known map[string]map[string]content, file string,
	read func(string, map[string]content) (map[string]content, error),
) {
	if _, twice := known[file]; twice { // it is named beside its directory
		return
	}
	contexts, err := read(file, s.known[file])
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	failed := s.failed(log, file, err)
	if failed {
		contexts = s.known[file]
	}
	known[file] = contexts
	for context, c := range contexts {
		if !s.matches(context) {
			continue
		}
		name, m := context, c.Member
		if failed {
			m.Problem = "can't be read; see the log of the manager"
		}
		if first, taken := all[multicluster.ClusterName(context)]; taken {
			name = file + "+" + context
			m = fleet.Member{Problem: "has the name of a context of " + first.file + ", which comes first; rename one of them"}
		}
		m.Origin, m.Labels = fmt.Sprintf("context %s of %s", context, file), s.options.Labels
		all[multicluster.ClusterName(name)] = found{m, file, context}
	}
}

// files returns the named files, and those of the named directories, in order.
func (s *Source) files(log logr.Logger, paths []string) []string {
	var files []string
	for _, path := range paths {
		if !isDirectory(path) {
			files = append(files, path) // that it can't be read is found out there
			continue
		}
		entries, err := os.ReadDir(path)
		if s.failed(log, path, err) {
			for _, file := range slices.Sorted(maps.Keys(s.known)) {
				if filepath.Dir(file) == filepath.Clean(path) {
					files = append(files, file)
				}
			}
		}
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") && !entry.IsDir() {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	return files
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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

// contextsOf returns what a file has for each of its contexts, as input that may be hostile.
func contextsOf(file string, _ map[string]content) (map[string]content, error) {
	data, err := contentOf(file)
	if err != nil {
		return nil, err
	}
	split, err := kubeconfig.Split(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	contexts := make(map[string]content, len(split))
	for name, one := range split {
		contexts[name] = content{Member: fleet.Member{Kubeconfig: one}}
	}
	return contexts, nil
}

func contentOf(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file of at most %d KiB", file, maxFile>>10)
	}
	return os.ReadFile(file)
}
