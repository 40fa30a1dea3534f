// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/test/long"
)

func namespace(name string, labels ...string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n", name, strings.Join(labels, ", "))
}

// TestNamespaceStaysWithWhatIsSomebodyElses puts one object into the namespace of an add-on.
func TestNamespaceStaysWithWhatIsSomebodyElses(t *testing.T) {
	for name, manifest := range map[string]string{
		"PodTemplate":   "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: theirs, namespace: NS}\ntemplate: {spec: {containers: [{name: c, image: x}]}}\n",
		"ResourceClaim": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: theirs, namespace: NS}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: x}}]}}\n",
		"Lease":         "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: theirs, namespace: NS}\n",
		// Its owner isn't in the namespace, and doesn't go with it.
		"Secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: NS, ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin, uid: UID, controller: true}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			extra := ns + "-extra"
			want := e.want(ns, chart{version: "1", manifest: namespace(extra) + configMap("x", "a")})
			e.install(want)
			admin := e.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "cluster-admin")
			e.apply("kubectl", strings.NewReplacer("NS", extra, "UID", string(admin.GetUID())).Replace(manifest))
			o := e.remove(want.Release)
			e.Expect(o.Gone).To(BeTrue())
			e.Expect(o.Message).To(And(ContainSubstring("Namespace "+extra), ContainSubstring(name+" theirs")))
			left := e.get("v1", "Namespace", "", extra)
			e.Expect(left).NotTo(BeNil())
			e.Expect(left.GetDeletionTimestamp()).To(BeNil())
		})
	}
}

// TestNamespaceStaysWithWhatIsStillWanted: the chart has the namespace no more, and objects in
// it still.
func TestNamespaceStaysWithWhatIsStillWanted(t *testing.T) {
	e, ns := beside(t)
	extra := ns + "-extra"
	inside := strings.Replace(configMap("x", "a"), "name: x", "name: x\n  namespace: "+extra, 1)
	e.install(e.want(ns, chart{version: "1", manifest: namespace(extra) + inside}))
	e.install(e.want(ns, chart{version: "2", manifest: inside}))
	left := e.get("v1", "Namespace", "", extra)
	e.Expect(left).NotTo(BeNil())
	e.Expect(left.GetDeletionTimestamp()).To(BeNil())
	e.Expect(e.get("v1", "ConfigMap", extra, "x").GetDeletionTimestamp()).To(BeNil())
}

// TestNamespaceGoesWithWhatItsObjectsMade: ReplicaSets and Pods hang on the add-on's
// Deployment, and go as well.
func TestNamespaceGoesWithWhatItsObjectsMade(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	extra := ns + "-extra"
	want := e.want(ns, chart{version: "1", manifest: namespace(extra) +
		strings.Replace(deployment("app"), "{name: app}", "{name: app, namespace: "+extra+"}", 1)})
	e.install(want)
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue(), "%s: %s", o.Reason, o.Message)
	e.Expect(o.Message).To(BeEmpty())
	e.Expect(e.get("v1", "Namespace", "", extra)).To(BeNil())
}

// TestNamespaceStaysWhileAnAPIDoesNotAnswer: what can't be looked for may be there. An API that
// goes with the add-on is no reason to keep it, though discovery shows it a while longer.
func TestNamespaceStaysWhileAnAPIDoesNotAnswer(t *testing.T) {
	long.Test(t)
	e, ns := alone(t)
	extra, group := ns+"-extra", ns+".example.com"
	want := e.want(ns, chart{version: "1", manifest: namespace(extra)})
	e.install(want)
	api := func(group string) string {
		return fmt.Sprintf("---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.%[1]s}\n"+
			"spec: {group: %[1]s, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: nobody, namespace: %[2]s}}\n", group, ns)
	}
	other := e.wantNamed("other", ns, chart{version: "1", manifest: namespace(ns+"-other") + api("other-"+group)})
	e.ensure(other)
	discovery := func() error {
		_, _, err := e.clientset().Discovery().ServerGroupsAndResources()
		return err
	}
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(HaveOccurred(), "it is to tell of the group")
	o := e.remove(other.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(BeEmpty())
	e.Eventually(discovery).WithTimeout(30 * time.Second).Should(Succeed())

	e.apply("kubectl", api(group))
	service := e.get("apiregistration.k8s.io/v1", "APIService", "", "v1."+group)
	t.Cleanup(func() { _ = e.target.Client.Delete(context.Background(), service) })
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(HaveOccurred(), "it is to tell of the group")

	o = e.remove(want.Release)
	e.Expect(e.target.Client.Delete(e.ctx, service)).To(Succeed())
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(Succeed(), "other tests need it")
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(And(ContainSubstring("Namespace "+extra), ContainSubstring(group)))
	e.Expect(e.get("v1", "Namespace", "", extra)).NotTo(BeNil())
}

// TestNamespaceGoesThoughDiscoveryIsBehind removes a namespace while discovery still shows a kind
// whose CRD is gone: there can't be objects of it.
func TestNamespaceGoesThoughDiscoveryIsBehind(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	extra, group := ns+"-extra", ns+".example.com"
	brings := e.wantNamed("brings", ns, chart{version: "1", manifest: crd(group) + widget(group, "one")})
	e.install(brings)
	want := e.want(ns, chart{version: "1", manifest: namespace(extra)})
	e.install(want)
	shown := e.clientset().Discovery()
	lists, err := shown.ServerPreferredNamespacedResources()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(lists).To(ContainElement(HaveField("GroupVersion", group+"/v1")))
	e.Expect(e.remove(brings.Release).Gone).To(BeTrue())
	e.Eventually(func() any {
		return e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	}).WithTimeout(30 * time.Second).Should(BeNil())

	e.target.Discovery = func(context.Context) (discovery.DiscoveryInterface, error) {
		return staleDiscovery{shown, lists}, nil
	}
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue(), "%s: %s", o.Reason, o.Message)
	e.Expect(o.Message).To(BeEmpty())
	e.Expect(e.get("v1", "Namespace", "", extra)).To(BeNil())
}

// staleDiscovery shows what there was.
type staleDiscovery struct {
	discovery.DiscoveryInterface
	were []*metav1.APIResourceList
}

func (s staleDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return s.were, nil
}

// TestNamespaceThatAPolicyRefuses tells just that, also later on: nothing was installed that could be lost.
func TestNamespaceThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns := e.namespace() + "-refused"
	e.deny(ns, "CREATE", "namespaces", "object.metadata.name != '"+ns+"'", "every namespace needs a team")
	e.Eventually(func() error {
		return e.target.Client.Create(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, client.DryRunAll)
	}).WithTimeout(time.Minute).ShouldNot(Succeed())
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	for range 3 {
		o := e.ensure(want)
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
		e.Expect(o.Reason).To(BeElementOf(object.ReasonForbidden, object.ReasonObjectRejected))
		e.Expect(o.Message).To(And(ContainSubstring("Namespace "+ns), ContainSubstring("every namespace needs a team")))
		e.Expect(o.Recorded).To(BeFalse(), "nothing was installed")
		e.clock.step(10 * time.Minute)
	}
}
