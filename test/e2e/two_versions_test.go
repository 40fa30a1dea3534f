// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestTwoVersions has two instances beside each other under newer CRDs: one of them
// doesn't know a field that the other one writes, and that a stack uses in the end. It changes
// the CRDs of all tests, so it runs before those that run in parallel.
func TestTwoVersions(t *testing.T) {
	long.Test(t)
	newer := buildNewer(t)
	installNewerCRDs(t)
	tn := newTenant(t)
	t.Cleanup(tn.clear)
	servers := map[string]*server{"one": workloadServer(t, 0), "two": workloadServer(t, 1)}
	suffix := utilrand.String(5)
	blue, green := "blue-"+suffix, "green-"+suffix
	tn.makeCluster("one", servers["one"], labels("home=own-blue", clusterv1.WatchLabel+"="+blue))
	tn.makeCluster("two", servers["two"], labels("home=own-green", clusterv1.WatchLabel+"="+green))
	ofOld, ofNew := tn.instance("old"), tn.instance("new")
	var managers []*manager
	start := func() {
		managers = []*manager{
			ofOld.startVersion(world.binary, "--watch-filter="+blue),
			ofNew.startVersion(newer, "--watch-filter="+green),
		}
	}
	start()
	for name, filter := range map[string]string{"shared": addonsv1.SharedWatchFilter, "own-blue": blue, "own-green": green} {
		stack := tn.stackWithFilter(name, filter, tn.small(name))
		if filter != addonsv1.SharedWatchFilter {
			stack.Spec.ClusterSelector.MatchLabels = labels("home=" + name)
		}
		tn.create(stack)
	}
	ready2 := func(tn *tenant, reason string) {
		tn.t.Helper()
		tn.awaitStatus("shared", reason, counts(2, 2))
	}
	ready2(tn, "both versions install it")
	settleAll(t, managers...)

	t.Run("they make one revision", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{"shared", "own-blue", "own-green"} {
			g.Expect(tn.in(t).revisionsOf(name)).To(HaveLen(1), "of stack %s", name)
		}
	})
	tn.run("each writes what it knows", func(_ *testing.T, tn *tenant) {
		tn.Expect(tomorrowIn(tn.read("ClusterAddon", "one"), "spec", "stacks")).To(HaveEach(""))
		tn.Expect(tomorrowIn(tn.read("ClusterAddon", "two"), "spec", "stacks")).To(HaveEach("newer"))
		tn.Expect(tomorrowIn(tn.read("ClusterAddon", "two"), "status", "addons")).To(HaveEach("newer"))
		tn.Expect(tomorrowIn(tn.read("AddonStack", "shared"), "status", "instances")).To(Equal([]string{"", "newer"}))
	})
	tn.run("an edit by a user of the older version's API is kept", func(t *testing.T, tn *tenant) {
		for i := range 3 {
			tn.setText("shared", fmt.Sprint("edit ", i))
			ready2(tn, "both versions take it up")
		}
		settleAll(t, managers...)
		tn.Expect(tn.revisionsOf("shared")).To(HaveLen(4), "one for each spec, whoever made it")
		tn.Expect(tomorrowIn(tn.read("AddonStack", "shared"), "status", "instances")).To(Equal([]string{"", "newer"}), "the older version leaves the newer one's entry as it is")
	})
	tn.run("Clusters change hands", func(t *testing.T, tn *tenant) {
		m := map[string]mark{"one": servers["one"].mark(t), "two": servers["two"].mark(t)}
		tn.refilter("one", green)
		tn.refilter("two", blue)
		tn.awaitCluster("one", "the newer version takes it over", assignedTo("shared", green))
		tn.awaitCluster("two", "the older version takes it over", assignedTo("shared", blue))
		ready2(tn, "all is as it was")
		settleAll(t, managers...)
		tn.quiet(t, m, "a hand-over is no business of the workload cluster")
		tn.Expect(tomorrowIn(tn.read("ClusterAddon", "two"), "spec", "stacks")).To(ContainElement("newer"), "what the newer version wrote stays")
		tn.setText("shared", "after the hand-over")
		ready2(tn, "the stack continues")
		settleAll(t, managers...)
		tn.Expect(tn.tomorrowOf("two", "shared")).To(Equal("newer"), "also where the older version has written another revision")
		tn.Expect(tn.tomorrowOf("one", "shared")).To(Equal("newer"), "the newer version writes it where it wasn't")
	})
	tn.run("a stack that uses what is new is for the newer version", func(t *testing.T, tn *tenant) {
		use := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/spec/addons/0/tomorrow", "value": "yes"}]`))
		tn.Expect(world.hub.Patch(t.Context(), tn.newStack("shared", nil), use)).To(Succeed())
		tn.awaitStack("shared", "the older version refuses it", addonsv1.ValidCondition, metav1.ConditionFalse, addonsv1.UnknownFieldsReason, "spec.addons[0].tomorrow")
		settleAll(t, managers...)
		usesIt := func(cluster string) bool { // as it is assigned
			ca := &addonsv1.ClusterAddon{}
			tn.Expect(world.hub.Get(t.Context(), tn.key(cluster), ca)).To(Succeed())
			return slices.ContainsFunc(tn.revisionsOf("shared"), func(r appsv1.ControllerRevision) bool {
				return strings.Contains(string(r.Data.Raw), `"tomorrow":"yes"`) &&
					slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Revision == r.Name })
			})
		}
		tn.Expect(usesIt("one")).To(BeTrue(), "the newer version takes it up")
		tn.Expect(usesIt("two")).To(BeFalse(), "the older version keeps what is there")
	})
	tn.run("at rest nothing changes", func(t *testing.T, tn *tenant) {
		before, mark := tn.versions(), world.hub.mark(t)
		for _, m := range managers {
			m.Stop(t)
		}
		start() // which looks at everything, and remembers nothing
		settleAll(t, managers...)
		tn.Expect(tn.versions()).To(Equal(before), "generations and resource versions")
		for _, user := range []string{ofOld.user, ofNew.user} {
			written := slices.DeleteFunc(writes(mark.requests(t, user)), func(request string) bool {
				return user == ofOld.user && strings.HasSuffix(request, "/events") // each process of the older one says that the CRDs are newer
			})
			tn.Expect(written).To(BeEmpty())
		}
	})
	tn.Expect(managers).To(HaveLen(2))
}

// startVersion starts another version of the manager. No other test may run at the
// same time.
func (tn *tenant) startVersion(binary string, flags ...string) *manager {
	tn.t.Helper()
	was := world.binary
	defer func() { world.binary = was }()
	world.binary = binary
	return tn.startManager(flags...)
}

// setText changes a value of a stack's first add-on, and nothing else: a typed client
// would drop what it doesn't know.
func (tn *tenant) setText(stack, text string) {
	tn.t.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/addons/0/values", "value": map[string]string{"text": text}}})
	must.Succeed(tn.t, err)
	must.Succeed(tn.t, world.hub.Patch(tn.t.Context(), tn.newStack(stack, nil), client.RawPatch(types.JSONPatchType, patch)))
}

// read returns an object with all its fields.
func (tn *tenant) read(kind, name string) *unstructured.Unstructured {
	tn.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(addonsv1.GroupVersion.WithKind(kind))
	must.Succeed(tn.t, world.hub.Get(tn.t.Context(), tn.key(name), u))
	return u
}

// tomorrowOf is the new field of a stack in a ClusterAddon.
func (tn *tenant) tomorrowOf(cluster, stack string) string {
	tn.t.Helper()
	u := tn.read("ClusterAddon", cluster)
	stacks, _, _ := unstructured.NestedSlice(u.Object, "spec", "stacks")
	for i, s := range stacks {
		if s.(map[string]any)["name"] == stack {
			return tomorrowIn(u, "spec", "stacks")[i]
		}
	}
	tn.t.Fatalf("ClusterAddon %s has no stack %s", cluster, stack)
	return ""
}

// versions are those of all objects that instances write in the tenant's namespace.
func (tn *tenant) versions() map[string]objectVersion {
	tn.t.Helper()
	versions := map[string]objectVersion{}
	for _, list := range []client.ObjectList{&addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}, &appsv1.ControllerRevisionList{}, &clusterv1.ClusterList{}} {
		must.Succeed(tn.t, world.hub.List(tn.t.Context(), list, client.InNamespace(tn.namespace)))
		must.Succeed(tn.t, meta.EachListItem(list, func(o runtime.Object) error {
			obj := o.(client.Object)
			versions[fmt.Sprintf("%T %s", obj, obj.GetName())] = objectVersion{resourceVersion: obj.GetResourceVersion(), generation: obj.GetGeneration()}
			return nil
		}))
	}
	return versions
}
