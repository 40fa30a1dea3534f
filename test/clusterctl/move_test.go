// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// move moves the team's namespace, and does what Cluster API then does on the other management cluster.
func (tm *team) move(from *server) {
	tm.t.Helper()
	to := tm.other(from)
	mustRun(tm.t, "move", "--kubeconfig="+from.kubeconfig, "--to-kubeconfig="+to.kubeconfig, "--namespace="+tm.namespace)
	tm.reportProvisioned(to)
}

// TestMove moves a Cluster to another management cluster and back, while a manager runs on each.
func TestMove(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tm := newTeam(t)
	tm.makeCluster(tm.here)
	tm.makeStack(tm.here)
	tm.create(tm.here, instanceOf(tm.namespace))
	here, there := tm.run(tm.here), tm.run(tm.there)
	all := ready("settings", "vault", "web")
	tm.await(tm.here, "all is installed", all)
	here.AwaitRest()
	installed, revision := tm.releases(), tm.revision(tm.here)
	NewWithT(t).Expect(installed).To(Equal(map[string]string{"settings/1": "deployed", "vault/1": "deployed", "web/1": "deployed"}))

	t.Run("there", func(t *testing.T) {
		tm, g, start := tm.in(t), NewWithT(t), time.Now()
		tm.move(tm.here)
		tm.await(tm.there, "the other management cluster knows what is installed", all)
		here.AwaitRest()
		there.AwaitRest()
		g.Expect(tm.releases()).To(Equal(installed))
		requests := tm.workload.requests(t, tm.user(), start)
		g.Expect(writesButNotes(requests)).To(BeEmpty(), "a move is no business of the workload cluster")
		g.Expect(by(tm.version(tm.there), requests)).NotTo(BeEmpty(), "the other one has looked")
		g.Expect(tm.created(tm.here, start)).To(BeEmpty(), "what clusterctl deletes isn't made again")
		tm.expectNothingLeft(tm.here)
		tm.expectAllMoved(tm.there)
		g.Expect(tm.revision(tm.there)).To(Equal(revision), "the same spec makes a revision of the same name")
	})

	t.Run("spec is the instances' there, too", func(t *testing.T) {
		tm, g := tm.in(t), NewWithT(t)
		tenant := tm.tenant(tm.there)
		ca := &addonsv1.ClusterAddon{ObjectMeta: tm.named(clusterName)}
		err := tenant.Patch(t.Context(), ca, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stacks":null}}`)))
		g.Expect(err).To(MatchError(ContainSubstring("'chandler-clusteraddon-spec'")))
		note := `{"metadata":{"annotations":{"` + addonsv1.ReconcileNowAnnotation + `":"1"}}}`
		g.Expect(tenant.Patch(t.Context(), ca, client.RawPatch(types.MergePatchType, []byte(note)))).To(Succeed())
	})

	t.Run("work continues there", func(t *testing.T) {
		tm, g, start := tm.in(t), NewWithT(t), time.Now()
		tm.changeStack(tm.there, func(spec *addonsv1.AddonStackSpec) {
			spec.Addons[0].Values = valuesOf(map[string]any{"text": "changed"})
		})
		g.Eventually(tm.releases).WithTimeout(patience).Should(And(
			HaveKeyWithValue("settings/2", "deployed"), HaveKeyWithValue("vault/1", "deployed"), HaveKeyWithValue("web/1", "deployed")))
		tm.changeStack(tm.there, func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:2] })
		g.Eventually(tm.releases).WithTimeout(patience).ShouldNot(HaveKey("web/1"), "what it didn't install itself it removes all the same")
		tm.await(tm.there, "two are left", ready("settings", "vault"))
		g.Expect(by(tm.version(tm.here), tm.workload.requests(t, tm.user(), start))).To(BeEmpty(), "where it came from, nobody asks for it any more")
	})

	t.Run("back, while the manager there is down", func(t *testing.T) {
		tm, g := tm.in(t), NewWithT(t)
		there.AwaitRest()
		installed, start := tm.releases(), time.Now()
		there.Stop(t)
		tm.move(tm.there)
		tm.await(tm.here, "it is back", ready("settings", "vault"))
		again := tm.run(tm.there)
		again.AwaitRest()
		here.AwaitRest()
		g.Expect(tm.releases()).To(Equal(installed))
		g.Expect(writesButNotes(tm.workload.requests(t, tm.user(), start))).To(BeEmpty(), "a manager that starts after the move finds nothing to do")
		tm.expectNothingLeft(tm.there)
		g.Eventually(func() (string, error) { return tm.list(tm.there, &appsv1.ControllerRevisionList{}) }).WithTimeout(patience).
			Should(BeEmpty(), "the garbage collector takes what stacks owned; it knows a new CRD half a minute after it was installed")
	})
}

// expectNothingLeft expects the source of a move to have nothing more of what was moved.
func (tm *team) expectNothingLeft(hub *server) {
	tm.t.Helper()
	for _, list := range []client.ObjectList{&clusterv1.ClusterList{}, &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}, &corev1.SecretList{}} {
		NewWithT(tm.t).Expect(tm.list(hub, list)).To(BeEmpty(), "%T", list)
	}
}

// list returns the names of the objects in the team's namespace.
func (tm *team) list(hub *server, list client.ObjectList) (string, error) {
	err := hub.List(tm.t.Context(), list, client.InNamespace(tm.namespace))
	var found []string
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		found = append(found, obj.(client.Object).GetName())
		return nil
	})
	return strings.Join(found, " "), err
}

// tenant may patch and replace ClusterAddons of the team's namespace, as far as RBAC goes.
func (tm *team) tenant(hub *server) client.Client {
	tm.t.Helper()
	user, err := hub.AddUser("tenant-of-" + tm.namespace)
	must.Succeed(tm.t, err)
	tm.create(hub, &rbacv1.Role{ObjectMeta: tm.named("tenant"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"clusteraddons"}, Verbs: []string{"*"}},
	}})
	tm.create(hub, &rbacv1.RoleBinding{
		ObjectMeta: tm.named("tenant"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant-of-" + tm.namespace}},
	})
	c, err := client.New(user.Config, client.Options{Scheme: apiserver.Scheme()})
	must.Succeed(tm.t, err)
	return c
}

// revision is the newest one of the AddonStack.
func (tm *team) revision(hub *server) string {
	tm.t.Helper()
	s := newStack(tm.namespace)
	must.Succeed(tm.t, hub.Get(tm.t.Context(), client.ObjectKeyFromObject(s), s))
	return s.Status.LatestRevision
}

// created are the objects that the manager made on a management cluster since a moment.
func (tm *team) created(hub *server, since time.Time) []string {
	tm.t.Helper()
	var all []string
	for _, e := range hub.requests(tm.t, "system:serviceaccount:"+systemNamespace+":chandler-manager", since) {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated &&
			e.ObjectRef != nil && e.ObjectRef.Namespace == tm.namespace && e.ObjectRef.Resource != "events" {
			all = append(all, e.Verb+" "+e.RequestURI)
		}
	}
	return all
}

// expectAllMoved expects everything that an AddonStack needs, and nothing that is of the other management cluster alone.
func (tm *team) expectAllMoved(hub *server) {
	tm.t.Helper()
	g := NewWithT(tm.t)
	for obj, name := range map[client.Object]string{
		&addonsv1.AddonStack{}: "platform", &addonsv1.ClusterAddon{}: clusterName,
		&corev1.Secret{}: "settings-values", &corev1.ConfigMap{}: "charts",
	} {
		g.Expect(hub.Get(tm.t.Context(), tm.key(name), obj)).To(Succeed(), "%T %s", obj, name)
	}
	ca, stack := &addonsv1.ClusterAddon{}, newStack(tm.namespace)
	g.Expect(hub.Get(tm.t.Context(), tm.key(clusterName), ca)).To(Succeed())
	g.Expect(ca.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Cluster"), HaveField("Name", clusterName))))
	g.Expect(hub.Get(tm.t.Context(), client.ObjectKeyFromObject(stack), stack)).To(Succeed())
	g.Expect(ca.Spec.Stacks).To(ConsistOf(addonsv1.StackRevision{Name: stack.Name, Revision: stack.Status.LatestRevision}))
	revision := &appsv1.ControllerRevision{}
	g.Expect(hub.Get(tm.t.Context(), tm.key(stack.Status.LatestRevision), revision)).To(Succeed(), "revisions are made again")
	g.Expect(metav1.IsControlledBy(revision, stack)).To(BeTrue())
	instances := &addonsv1.ProviderInstanceList{}
	g.Expect(hub.List(tm.t.Context(), instances, client.InNamespace(tm.namespace))).To(Succeed())
	g.Expect(instances.Items).NotTo(ContainElement(HaveField("Name", "here-alone")), "an instance is where its process is")
	for _, obj := range []client.Object{ca, stack} {
		g.Expect(obj.GetAnnotations()).NotTo(HaveKey(clusterctlv1.DeleteForMoveAnnotation))
	}
}

// instanceOf is what an instance says of itself in the team's own namespace.
func instanceOf(namespace string) *addonsv1.ProviderInstance {
	i := &addonsv1.ProviderInstance{}
	i.Namespace, i.Name = namespace, "here-alone"
	i.Spec = addonsv1.ProviderInstanceSpec{
		Namespaces: []string{namespace + "-else"}, Version: olderVersion, APIVersions: []string{"v1beta1"},
		Holder: "nobody", Claim: addonsv1.ScopeWaiting, ExpirySeconds: 300,
	}
	return i
}
