// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/fleet/self"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// A name that two sources have would lead to the wrong cluster.
func TestSourcesOfOneName(t *testing.T) {
	p := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{self.Source{}, self.Source{}}})
	if err := p.SetupWithManager(nil); err == nil {
		t.Error("two sources have one name")
	}
}

// The manager's own cluster is one of the fleet, with the manager's own rights.
func TestSelf(t *testing.T) {
	h := start(t, quick(self.Source{Labels: map[string]string{"role": "management"}}))
	name := fleet.NameOf(self.Name, self.Cluster)
	conn := h.connected(t, name)
	works(t, conn)
	if conn.GetConfig().Host != h.config.Host {
		t.Errorf("connected to %s", conn.GetConfig().Host)
	}
	if m, _ := h.Describe(name); m.Labels["role"] != "management" || m.Config != nil {
		t.Errorf("%+v", m)
	}
}

// TestSourcesAreAddedWhileTheManagerRuns, each with a controller or a runnable of its own. Two objects of one source may
// name one server; a later source's may not.
func TestSourcesAreAddedWhileTheManagerRuns(t *testing.T) {
	o := quick(self.Source{})
	o.Identify = true
	h := start(t, o)
	h.connected(t, fleet.NameOf(self.Name, self.Cluster))
	h.member(t, "one", h.workload.Kubeconfig())
	h.member(t, "again", h.workload.Kubeconfig())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), kubeconfigWith(t, map[string][]byte{"two": h.other.Kubeconfig(), "three": h.workload.Kubeconfig()}))
	source, err := files.New(files.Options{Paths: []string{dir}})
	must.Succeed(t, err)
	for _, added := range []fleet.Source{secrets.New(secrets.Options{}), source} {
		must.Succeed(t, h.AddSource(h.local, added))
		wait.Until(t, patience, "all of "+added.Name(), func() error {
			if !h.Synced(added.Name()) {
				return errors.New("it isn't synced")
			}
			return nil
		})
		if added.Name() == secrets.Name {
			works(t, h.connected(t, h.memberName("one")))
			works(t, h.connected(t, h.memberName("again")))
		}
	}
	works(t, h.connected(t, fleet.NameOf(files.Name, "two")))
	h.expect(t, fleet.NameOf(files.Name, "three"), fleet.PhaseRefused, fleet.ReasonDuplicateCluster)
}
