// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Backup keeps all that is in etcd, and returns what brings it back: as after a disaster, the
// API server continues with previous objects, at a previous resourceVersion. It is for control planes
// without Workers. The API server is down meanwhile.
func (c *ControlPlane) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	data, kept := filepath.Join(c.dir, "etcd"), filepath.Join(c.dir, "etcd-backup")
	if err := c.offline(ctx, func() error {
		if err := os.RemoveAll(kept); err != nil {
			return err
		}
		return os.CopyFS(kept, os.DirFS(data))
	}); err != nil {
		return nil, fmt.Errorf("backing etcd up: %w", err)
	}
	return func(ctx context.Context) error {
		return c.offline(ctx, func() error {
			if err := os.RemoveAll(data); err != nil {
				return err
			}
			return os.CopyFS(data, os.DirFS(kept))
		})
	}, nil
}

// offline does something while nothing of the control plane runs.
func (c *ControlPlane) offline(ctx context.Context, do func() error) error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	c.mu.Lock()
	c.etcd.Kill()
	c.group = 0 // nobody is left in it
	c.mu.Unlock()
	if err := os.Remove(c.path("etcd.sock")); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	// etcd refuses a directory that others may read.
	if err := os.Chmod(filepath.Join(c.dir, "etcd"), 0o700); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}
