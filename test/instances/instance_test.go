// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/cluster-chandler/chandler/test/wait"
)

// instance is one installation of config/instance.
type instance struct {
	overlay
	w          *world
	namespace  string // that it runs in
	version    string
	deployment *appsv1.Deployment
	replicas   *[]*process
}

// install applies the overlay; nothing runs yet.
func (w *world) install(o overlay) *instance {
	w.t.Helper()
	for _, namespace := range o.namespaces {
		w.createNamespace(namespace)
	}
	return w.prepareInstall(o, func(*unstructured.Unstructured) bool { return true })
}

// prepareInstall applies some objects of the overlay.
func (w *world) prepareInstall(o overlay, some func(*unstructured.Unstructured) bool) *instance {
	w.t.Helper()
	objects := build(w.t, o.write(w.t))
	i := &instance{overlay: o, w: w, namespace: o.runsIn(), version: defaultVersion, replicas: new([]*process)}
	i.deployment = deploymentIn(w.t, objects)
	w.apply(slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return !some(object) }))
	w.offerCharts(i.namespace)
	return i
}

// startInstance installs an overlay, starts one replica, and waits until it is ready.
func (w *world) startInstance(o overlay, flags ...string) *instance {
	w.t.Helper()
	i := w.install(o)
	i.start(flags...)
	i.awaitReady()
	return i
}

// quick are flags that let a test take seconds instead of minutes.
var quick = []string{
	"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=500ms",
}

// unhurried take back what quick does, where only a slow machine would lose a lease.
var unhurried = []string{
	"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s",
}

// start starts one more replica.
func (i *instance) start(flags ...string) *process {
	i.w.t.Helper()
	i.prepare(flags...)()
	return i.last()
}

// prepare makes one more replica, and returns what starts it.
func (i *instance) prepare(flags ...string) (launch func()) {
	i.w.t.Helper()
	all := append([]string{"--leader-elect-namespace=" + i.namespace}, quick...)
	m := i.w.newPod(i.deployment).process(i.version, append(all, flags...)...)
	*i.replicas = append(*i.replicas, m)
	return m.Launch
}

// last is the replica that was started last.
func (i *instance) last() *process { return (*i.replicas)[len(*i.replicas)-1] }

// user is who the instance is on the management cluster.
func (i *instance) user() string {
	return serviceaccount.MakeUsername(i.namespace, i.deployment.Spec.Template.Spec.ServiceAccountName)
}

func (i *instance) awaitReady() {
	i.w.t.Helper()
	wait.Until(i.w.t, patience, "instance "+i.name+" is to become ready", i.last().ready)
}

// in is the instance within a subtest.
func (i *instance) in(t *testing.T) *instance {
	sub := *i
	sub.w = i.w.in(t)
	return &sub
}

// looksAfter says whether the namespace is in the instance's scope.
func (i *instance) looksAfter(namespace string) bool {
	return len(i.namespaces) == 0 || slices.Contains(i.namespaces, namespace)
}
