// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// longerThanGrace is how long nothing may be deleted after all that asks for add-ons is
// gone: more than an AddonStack has to be gone before its add-ons go.
const longerThanGrace = 12 * time.Second

// TestUninstall takes away what Chandler is made of while the manager runs. It isn't
// parallel: the management cluster is another one meanwhile.
func TestUninstall(t *testing.T) {
	long.Test(t)
	previous := world.hub
	defer func() { world.hub = previous }()
	hub, err := startHub(t.Context(), controlplane.Options{Name: "management-of-uninstall", Workers: true})
	must.Succeed(t, err)
	defer func() { _ = hub.Stop() }()
	world.hub = hub
	crds := filepath.Join(world.root, "config/crd/bases")

	// A stack of one cluster, whose removal nothing else would hold.
	install := func(t *testing.T, number int) (*tenant, func() []string) {
		t.Helper()
		tn, s := newProd(t, number)
		tn.install(tn.small("settings"))
		tn.settle()
		return tn, tn.watchDeletions(s)
	}
	expectKept := func(t *testing.T, tn *tenant, number int, deletions func() []string) {
		t.Helper()
		g := NewWithT(t)
		g.Consistently(func() int { return workloadServer(t, number).release(t, tn.namespace, "settings").revision }).
			WithTimeout(longerThanGrace).WithPolling(time.Second).Should(Equal(1))
		g.Expect(deletions()).To(BeEmpty())
	}

	t.Run("the namespace", func(t *testing.T) {
		tn, deletions := install(t, 0)
		tn.kubectl(t, "delete", "namespace", tn.namespace, "--wait=false")
		expectKept(t, tn, 0, deletions)
	})
	t.Run("the CRD of AddonStacks", func(t *testing.T) {
		tn, deletions := install(t, 1)
		tn.kubectl(t, "delete", "crd", "addonstacks.addons.cluster.x-k8s.io")
		tn.kubectl(t, "apply", "-f", filepath.Join(crds, "addons.cluster.x-k8s.io_addonstacks.yaml"))
		expectKept(t, tn, 1, deletions)
		tn.awaitCluster("prod", "it waits for a word", heldOn("platform", addonsv1.RemovalStackDeleted))
		tn.confirm("prod", "platform")
		tn.expectRemoved(t, workloadServer(t, 1), "settings")
	})
	t.Run("the CRD of AddonStacks while no manager runs", func(t *testing.T) {
		tn, deletions := install(t, 1)
		tn.allowWidely()
		tn.stopManager()
		tn.kubectl(t, "delete", "crd", "addonstacks.addons.cluster.x-k8s.io")
		tn.kubectl(t, "apply", "-f", filepath.Join(crds, "addons.cluster.x-k8s.io_addonstacks.yaml"))
		tn.startManager()
		tn.awaitCluster("prod", "it waits for a word", heldOn("platform", addonsv1.RemovalStackDeleted))
		expectKept(t, tn, 1, deletions)
		tn.install(tn.addon("settings", "settings-1.0.0"))
		tn.remove(tn.newStack("platform", nil))
		tn.expectRemoved(t, workloadServer(t, 1), "settings")
	})
	t.Run("all CRDs", func(t *testing.T) {
		tn, deletions := install(t, 2)
		tn.kubectl(t, "delete", "-f", crds)
		tn.kubectl(t, "apply", "-f", crds)
		expectKept(t, tn, 2, deletions)
	})
	t.Run("what kustomize built", func(t *testing.T) {
		tn, deletions := install(t, 0)
		objects, err := kustomization.Build(filepath.Join(world.root, "config/default"))
		must.Succeed(t, err)
		var all bytes.Buffer
		for _, o := range objects {
			if o.GroupVersionKind().Group == "cert-manager.io" {
				continue // isn't installed here
			}
			all.WriteString("---\n")
			all.Write(mustYAML(t, o))
		}
		file := filepath.Join(t.TempDir(), "all.yaml")
		must.Succeed(t, os.WriteFile(file, all.Bytes(), 0o600))
		tn.kubectl(t, "apply", "--namespace=chandler-system", "--server-side", "--force-conflicts", "-f", file)
		tn.kubectl(t, "delete", "--namespace=chandler-system", "-f", file)
		expectKept(t, tn, 0, deletions)
	})
}

// TestRestoredClusterAddonWithoutStack brings a ClusterAddon back with the status that it
// had, as a backup tool may, before the stacks.
func TestRestoredClusterAddonWithoutStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	tn.install(tn.small("settings"))
	tn.settle()
	tn.stopManager()
	deletions := tn.watchDeletions(s)

	backup := tn.clusterAddon("prod")
	tn.Expect(world.hub.Get(t.Context(), tn.key("prod"), backup)).To(Succeed())
	tn.remove(tn.newStack("platform", nil))
	tn.remove(tn.clusterAddon("prod"))
	restored := backup.DeepCopy()
	restored.ResourceVersion, restored.UID = "", ""
	tn.create(restored)
	restored.Status = backup.Status
	tn.Expect(world.hub.Status().Update(t.Context(), restored)).To(Succeed())

	tn.startManager()
	tn.awaitCluster("prod", "the stack isn't there", phase("settings", addonsv1.AddonUnassigned, "StackUnknown", ""))
	tn.Consistently(func() int { return s.release(t, tn.namespace, "settings").revision }).
		WithTimeout(longerThanGrace).WithPolling(time.Second).Should(Equal(1))
	tn.Expect(deletions()).To(BeEmpty(), "nobody here has asked for a removal")
	tn.install(tn.small("settings"))
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}), "and nothing is installed again")

	tn.remove(tn.newStack("platform", nil))
	tn.expectRemoved(t, s, "settings")
}

func mustYAML(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	data, err := yaml.Marshal(o.Object)
	must.Succeed(t, err)
	return data
}
