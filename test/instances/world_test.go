// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

// world is a management cluster, with Cluster API's kinds, to which config/shared and
// instances are applied.
type world struct {
	t    *testing.T
	root *testing.T // which processes and files live as long as
	*server
	id           string            // unique: the add-ons of this world are in namespaces with this prefix
	certificates map[string][]byte // CAs by Certificate
	services     *services
	webhooks     *[]*process
	pods         *atomic.Int32 // made so far
}

// worldOptions say how a world differs from the usual one.
type worldOptions struct {
	// workers adds the controller-manager, which collects garbage.
	workers bool
	// shared is the overlay of what all instances share, "" for none at first.
	shared string
	// apiServerArgs are added to those of the API server.
	apiServerArgs []string
}

// usual is config/shared.
var usual = worldOptions{shared: "config/shared"}

func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	crds, err := apiserver.ClusterAPICRDs(t.Context(), "clusters", "clusterclasses")
	must.Succeed(t, err)
	services := startServices(t)
	s := apiserver.Own(t, controlplane.Options{
		Name: strings.ToLower(t.Name()), Workers: o.workers, CRDPaths: crds, AuditPolicy: auditPolicy,
		ExtraAPIServerArgs: append([]string{"--egress-selector-config-file=" + services.config}, o.apiServerArgs...),
	})
	w := &world{t: t, root: t, server: s, id: "w" + utilrand.String(5), certificates: map[string][]byte{}, services: services, webhooks: new([]*process), pods: new(atomic.Int32)}
	if o.shared != "" {
		w.installShared(o.shared)
	}
	return w
}

// in is the world within a subtest, which then fails instead of the whole test.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t = t
	return &sub
}

// installShared applies CRDs and webhooks, and starts as many replicas as it says.
func (w *world) installShared(path string, flags ...string) {
	w.t.Helper()
	objects := build(w.t, shared.root+"/"+path)
	w.apply(objects)
	w.startWebhooks(deploymentIn(w.t, objects), flags...)
}

// startWebhooks starts the replicas, and returns when the API server can reach each.
func (w *world) startWebhooks(d *appsv1.Deployment, flags ...string) {
	w.t.Helper()
	*w.webhooks = nil
	for range *d.Spec.Replicas {
		p := w.newPod(d)
		address := manager.FreeAddress(w.t)
		_, port, err := net.SplitHostPort(address)
		must.Succeed(w.t, err)
		m := p.start(defaultVersion, append([]string{"--webhook-port=" + port, "--hook-port=0"}, flags...)...)
		m.serves = address
		*w.webhooks = append(*w.webhooks, m)
		w.services.add(p.name, address)
	}
	for _, m := range *w.webhooks {
		wait.Until(w.t, patience, "the webhooks are to become ready", m.ready)
	}
}

// killWebhooks ends all replicas as a power failure would.
func (w *world) killWebhooks() {
	for _, m := range *w.webhooks {
		w.services.remove(m.name)
		m.Kill()
	}
}

func (w *world) createNamespace(name string) {
	w.t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name = name
	if err := w.Create(w.t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatalf("creating namespace %s: %v", name, err)
	}
}

// create makes an object on the management cluster.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}
