// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/must"
)

// tenant is a test's share of the world: a namespace of the management cluster,
// a folder of charts, and managers that see nothing but these. The namespace's
// name is unique, so add-ons go to the namespace of the same name in workload
// clusters.
type tenant struct {
	*WithT
	t         *testing.T
	namespace string
	charts    string // the artifact root
	user      string // of the managers, on the management cluster
	*processes
}

// processes are the managers that a tenant started. They outlive the subtest
// that did so.
type processes struct {
	root        *testing.T
	count       int
	managers    []*manager
	manager     *manager // the last one
	environment []string // of those that are started, "NAME=value", beside the usual
	hub         *proxy   // through which those that are started reach the management cluster; nil for none
}

// in is the tenant within a subtest, which then fails instead of the whole test.
func (tn *tenant) in(t *testing.T) *tenant {
	sub := *tn
	sub.t, sub.WithT = t, NewWithT(t)
	return &sub
}

// run runs a part of the test with the tenant.
func (tn *tenant) run(name string, part func(*testing.T, *tenant)) {
	tn.t.Run(name, func(t *testing.T) { part(t, tn.in(t)) })
}

// newTenant makes a tenant; its user has no more rights than config/rbac gives.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test"))
	if len(name) > 30 {
		name = name[:30]
	}
	namespace := strings.ReplaceAll(strings.Trim(name, "-_"), "_", "-") + "-" + utilrand.String(4)
	tn := &tenant{WithT: NewWithT(t), t: t, namespace: namespace, charts: filepath.Join(t.TempDir(), "charts"), processes: &processes{root: t}}
	tn.user = "chandler:" + tn.namespace
	must.Succeed(t, os.Mkdir(tn.charts, 0o755))
	world.hub.createNamespace(t, tn.namespace)
	tn.allowIn(tn.namespace)
	tn.allowToRun()
	t.Cleanup(tn.explainFailure)
	return tn
}

// allowIn gives the tenant's managers their role in a namespace, and nowhere else.
func (tn *tenant) allowIn(namespace string) {
	tn.t.Helper()
	world.hub.bind(tn.t, namespace, "manager-of-"+tn.namespace, user(tn.user), "ClusterRole", "manager-role")
}

// allowToRun gives the tenant's managers what they need where they run: a lease, and
// their ProviderInstance.
func (tn *tenant) allowToRun() {
	tn.t.Helper()
	role := shippedRole(tn.t, "own/role.yaml")
	world.hub.grant(tn.t, tn.namespace, role.Name, user(tn.user), role.Rules...)
}

// allowWidely gives the tenant's managers the rights that an instance has outside of namespaces.
func (tn *tenant) allowWidely() {
	tn.t.Helper()
	role := shippedRole(tn.t, "own/metrics_role.yaml")
	world.hub.grant(tn.t, "", role.Name+"-"+tn.namespace, user(tn.user), role.Rules...)
}

// allowEverywhere gives the tenant's managers their role in all namespaces.
func (tn *tenant) allowEverywhere() {
	tn.t.Helper()
	world.hub.bind(tn.t, "", "manager-of-"+tn.namespace, user(tn.user), "ClusterRole", "manager-role")
}

// startManager starts a manager that manages the tenant's namespace.
func (tn *tenant) startManager(flags ...string) *manager {
	tn.t.Helper()
	return tn.launch(append([]string{"--namespace=" + tn.namespace}, flags...)...)
}

// launch starts a manager with no scope but what the flags say.
func (tn *tenant) launch(flags ...string) *manager {
	tn.t.Helper()
	user, err := world.hub.AddUser(tn.user)
	must.Succeed(tn.t, err)
	kubeconfig := user.Kubeconfig
	if tn.hub != nil {
		kubeconfig = tn.hub.kubeconfig(tn.t)
	}
	tn.buryDead()
	tn.count++
	name := fmt.Sprintf("%s-%d", tn.namespace, tn.count)
	tn.manager = launchIn(tn.root, tn.environment, name, kubeconfig, append([]string{"--artifact-root=" + tn.charts, "--instance-namespace=" + tn.namespace}, flags...)...)
	tn.managers = append(tn.managers, tn.manager)
	return tn.manager
}

// buryDead deletes what killed managers left of their registration, as an admin may
// who knows that they are dead. Otherwise the next one waits until they have expired.
func (tn *tenant) buryDead() {
	tn.t.Helper()
	for _, m := range tn.managers {
		select {
		case <-m.Done():
		default:
			return // one lives
		}
	}
	must.Succeed(tn.t, world.hub.FreeScopes(tn.t.Context(), tn.namespace))
}

// restart kills the manager and starts another one with the same flags.
func (tn *tenant) restart(flags ...string) *manager {
	tn.t.Helper()
	tn.manager.Kill()
	return tn.startManager(flags...)
}

// key names an object of the tenant's namespace.
func (tn *tenant) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: tn.namespace, Name: name}
}

// named is of an object in the tenant's namespace.
func (tn *tenant) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: tn.namespace, Name: name}
}

// create makes an object on the management cluster.
func (tn *tenant) create(obj client.Object) {
	tn.t.Helper()
	if err := world.hub.Create(tn.t.Context(), obj); err != nil {
		tn.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// change reads an object of the management cluster, changes it, and writes it,
// again if somebody else wrote it in between.
func change[T client.Object](tn *tenant, obj T, mutate func(T)) T {
	tn.t.Helper()
	return changeOn(tn.t, world.hub, obj, mutate)
}

func changeOn[T client.Object](t *testing.T, s *server, obj T, mutate func(T)) T {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // a cleanup changes objects, too
	err := retryOnConflict(func() error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		mutate(obj)
		return s.Update(ctx, obj)
	})
	if err != nil {
		t.Fatalf("changing %T %s: %v", obj, obj.GetName(), err)
	}
	return obj
}

// remove deletes an object of the management cluster.
func (tn *tenant) remove(obj client.Object) {
	tn.t.Helper()
	if err := world.hub.Delete(context.WithoutCancel(tn.t.Context()), obj); client.IgnoreNotFound(err) != nil {
		tn.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}
