// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestNamespaceChangesHands moves a namespace from the scope of one instance to that
// of another.
func TestNamespaceChangesHands(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	w := newWorld(t, usual)
	s := workload(t, 0)
	both := w.startInstance(overlay{name: "both", namespaces: []string{"team-a", "team-b"}}, heartbeat(1)...)
	for _, namespace := range []string{"team-a", "team-b"} {
		w.installSettings(s, namespace, "moving")
		w.awaitStackReady(namespace, "platform")
	}
	before := w.inventory(s, "team-b")
	workload := s.Audit.Mark(t)
	written := func(e *event) bool {
		namespace, _, ok := w.clusterOf(e.User.Username)
		return ok && namespace != "" && wrote(e)
	}

	// The user takes the namespace off one instance, and gives it to another.
	both.last().stop()
	one := w.startInstance(overlay{name: "one", namespaces: []string{"team-a"}}, heartbeat(1)...)
	two := w.startInstance(overlay{name: "two", namespaces: []string{"team-b"}}, heartbeat(1)...)
	for _, i := range []*instance{one, two} {
		i.awaitRegistered("the instance is to manage its Cluster, which is ready", func(pi *addonsv1.ProviderInstance) error {
			return counted(pi, 1)
		})
	}
	g.Expect(w.inventory(s, "team-b")).To(Equal(before), "ClusterAddon, revisions and records are the same objects")
	expectNone(t, workload.Requests(t, written), "no write reaches a workload cluster")

	stack := stackNamed("team-b", "platform", nil)
	g.Expect((&user{ctx: t.Context(), w: w}).patch(stack, map[string]any{"spec": map[string]any{
		"addons": []addonsv1.Addon{settings("settings", w.addonNamespace("team-b"), "two")},
	}})).To(Succeed())
	w.awaitInstalled(s, "team-b", "settings", "two/none")
}

// inventory are the UIDs of what instances made for a namespace, by kind and name.
func (w *world) inventory(s *server, namespace string) map[string]types.UID {
	w.t.Helper()
	found := map[string]types.UID{}
	addons, revisions, records := &addonsv1.ClusterAddonList{}, &appsv1.ControllerRevisionList{}, &corev1.SecretList{}
	for _, err := range []error{
		w.List(w.t.Context(), addons, client.InNamespace(namespace)),
		w.List(w.t.Context(), revisions, client.InNamespace(namespace)),
		s.List(w.t.Context(), records, client.InNamespace(w.addonNamespace(namespace)), client.HasLabels{"owner"}),
	} {
		must.Succeed(w.t, err)
	}
	for i := range addons.Items {
		found["ClusterAddon "+addons.Items[i].Name] = addons.Items[i].UID
	}
	for i := range revisions.Items {
		found["ControllerRevision "+revisions.Items[i].Name] = revisions.Items[i].UID
	}
	for i := range records.Items {
		found["record "+records.Items[i].Name] = records.Items[i].UID
	}
	if len(found) < 3 {
		w.t.Fatalf("there are only %v", found)
	}
	return found
}
