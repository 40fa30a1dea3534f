// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cluster-chandler/chandler/test/kustomization"
)

// here is config/instance of this checkout.
const here = "config/instance"

// write checks the overlay by building it, writes it, and returns the number of objects
// that it makes.
func (o *options) write() (int, error) {
	local, err := o.localBase()
	if err != nil {
		return 0, err
	}
	base := o.base
	if !remote(base) {
		base = local
	}
	files := o.overlay(base)
	if err := o.refuseToOverwrite(files); err != nil {
		return 0, err
	}
	// What is checked is beside what is written, so that the same paths lead to the
	// base; an address elsewhere stands for the same files as are here.
	parent := filepath.Dir(filepath.Clean(o.out))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return 0, err
	}
	draft, err := os.MkdirTemp(parent, ".instance-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(draft)
	if err := writeFiles(draft, o.overlay(local)); err != nil {
		return 0, err
	}
	objects, err := kustomization.Build(draft)
	if err != nil {
		return 0, err
	}
	return len(objects), writeFiles(o.out, files)
}

// localBase is the way from the overlay to config/instance on this machine.
func (o *options) localBase() (string, error) {
	folder := o.base
	if folder == "" || remote(folder) {
		folder = here
	}
	if _, err := os.Stat(filepath.Join(folder, "manager", "kustomization.yaml")); err != nil {
		return "", fmt.Errorf("--base: %s isn't Chandler's config/instance; run this in a checkout, or name the folder", folder)
	}
	from, err := filepath.Abs(o.out)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	// kustomize resolves links, and so does this.
	if to, err = filepath.EvalSymlinks(to); err != nil {
		return "", err
	}
	way, err := filepath.Rel(resolved(from), to)
	return filepath.ToSlash(way), err
}

// resolved is the path without links, also of what doesn't exist yet.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

func (o *options) refuseToOverwrite(files map[string]string) error {
	if o.force {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(o.out, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--out: %s is there already; --force writes over it", path)
		}
	}
	return nil
}

func writeFiles(folder string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
