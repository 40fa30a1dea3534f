// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/fleet/self"
	"github.com/cluster-chandler/chandler/test/wait"
)

// Two objects of one source may name one server: many Clusters of a test do.
func TestOneServerNamedTwiceByOneSource(t *testing.T) {
	h := start(t, quick(capi.New(capi.Options{}), secrets.New(secrets.Options{})))
	h.member(t, "one", h.workload.Kubeconfig())
	h.member(t, "two", h.workload.Kubeconfig())
	h.connected(t, h.memberName("one"))
	h.connected(t, h.memberName("two"))
}

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

// TestSourcesAreAddedWhileTheManagerRuns, each with a controller or a runnable of its own.
func TestSourcesAreAddedWhileTheManagerRuns(t *testing.T) {
	o := quick(self.Source{})
	o.Identify = true
	h := start(t, o)
	h.connected(t, fleet.NameOf(self.Name, self.Cluster))
	h.member(t, "one", h.workload.Kubeconfig())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), kubeconfigWith(t, map[string][]byte{"two": h.other.Kubeconfig(), "three": h.workload.Kubeconfig()}))
	source, err := files.New(files.Options{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, added := range []fleet.Source{secrets.New(secrets.Options{}), source} {
		if err := h.AddSource(h.local, added); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, patience, "all of "+added.Name(), func() error {
			if !h.Synced(added.Name()) {
				return errors.New("it isn't synced")
			}
			return nil
		})
		if added.Name() == secrets.Name {
			works(t, h.connected(t, h.memberName("one")))
		}
	}
	works(t, h.connected(t, fleet.NameOf(files.Name, "two")))
	h.expect(t, fleet.NameOf(files.Name, "three"), fleet.PhaseRefused, fleet.ReasonDuplicateCluster)
}

// From makes any provider's clusters ours: the one that is removed there is gone here, and a dead
// one is told from others.
func TestFrom(t *testing.T) {
	h := newHub(t)
	theirs := kubeconfig.New(kubeconfig.Options{Namespace: h.namespace, KubeconfigSecretLabel: secrets.DefaultLabel})
	h.run(t, quick(fleet.From("theirs", theirs, func(mgr mcmanager.Manager) error {
		return theirs.SetupWithManager(context.Background(), mgr)
	})))
	s := h.member(t, "one", h.workload.Kubeconfig())
	name := fleet.NameOf("theirs", "one")
	conn := h.connected(t, name)
	works(t, conn)
	h.delete(t, s)
	h.gone(t, name, conn)
	h.member(t, "one", h.other.Kubeconfig())
	if conn := h.connected(t, name); conn.GetConfig().Host != h.other.Config().Host {
		t.Errorf("connected to %s", conn.GetConfig().Host)
	}
}
