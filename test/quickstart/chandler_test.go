// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"path/filepath"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// install applies config/default as clusterctl would, and runs the Deployment's container as a process. It returns once that is
// ready.
func (d *desk) install() {
	d.t.Helper()
	chandler, err := manager.Prepare(filepath.Join(root, "config/default"), d.dir)
	must.Succeed(d.t, err)
	d.run("kubectl apply --server-side -f chandler.yaml")
	args, account, err := chandler.Container(d.t.Context(), d.management, "--artifact-root=")
	must.Succeed(d.t, err)
	binary, err := manager.Build(d.t.Context(), root, d.dir, version)
	must.Succeed(d.t, err)
	d.manager = manager.New(d.t, manager.Options{Binary: binary, Kubeconfig: account, Args: args})
	d.manager.Launch()
	wait.Until(d.t, patience, "Chandler is ready", func() error {
		if err := d.manager.Running(); err != nil {
			return err
		}
		return chandler.Ready()
	})
}

// explain is what helps to understand a command that failed.
func (d *desk) explain() string {
	if d.manager == nil {
		return ""
	}
	return string(d.manager.Tail())
}
