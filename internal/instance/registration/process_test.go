// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/audit"
)

// patience is how long a test waits for what needs no time.
const patience = 30 * time.Second

var reads = []schema.GroupResource{{Group: addonsv1.GroupVersion.Group, Resource: "clusteraddons"}, {Resource: "secrets"}}

// home is a namespace that an instance runs in, and the instance's user.
type home struct {
	*WithT
	t         *testing.T
	s         *server
	namespace string
	user      string
}

// newHome makes a namespace in which the user has the rights of config/rbac.
func newHome(t *testing.T, s *server) *home {
	t.Helper()
	return newHomeNamed(t, s, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
}

func newHomeNamed(t *testing.T, s *server, name string) *home {
	t.Helper()
	h := &home{WithT: NewWithT(t), t: t, s: s, namespace: name, user: "chandler:" + name}
	h.createNamespace(name)
	role := &rbacv1.Role{}
	data, err := os.ReadFile("../../../config/rbac/own/role.yaml")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(yaml.UnmarshalStrict(data, role)).To(Succeed())
	role.Namespace = name
	h.Expect(s.Create(t.Context(), role)).To(Succeed())
	h.bind(name, "Role", role.Name)
	h.allowReads(name)
	return h
}

func (h *home) createNamespace(name string) {
	h.t.Helper()
	h.Expect(h.s.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// allowReads gives the user what the controllers of these tests would list.
func (h *home) allowReads(namespace string) {
	h.t.Helper()
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", addonsv1.GroupVersion.Group}, Resources: []string{"secrets", "clusteraddons"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"list"}}, // without which no scope is given
	}}
	role.Namespace, role.Name = namespace, "reads"
	h.Expect(h.s.Create(h.t.Context(), role)).To(Succeed())
	h.bind(namespace, "Role", role.Name)
}

func (h *home) bind(namespace, kind, role string) {
	h.t.Helper()
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: h.user}},
	}
	binding.Namespace, binding.Name = namespace, role+"-for-"+h.namespace
	h.Expect(h.s.Create(h.t.Context(), binding)).To(Succeed())
}

// process is a manager with a registration, and with controllers that only say
// whether they run.
type process struct {
	*registration.Registration
	h       *home
	working atomic.Int32 // 1 while the controllers run
	starts  atomic.Int32
	dead    chan error // what Die was called with
	ended   chan error // of the manager
	stop    context.CancelFunc
	cut     atomic.Bool // no request gets through, as if the process had crashed
}

type processOption func(*registration.Options, *manager.Options)

// start starts an instance for its home namespace.
func (h *home) start(change ...processOption) *process {
	h.t.Helper()
	p := &process{h: h, dead: make(chan error, 1), ended: make(chan error, 1)}
	user, err := h.s.AddUser(h.user)
	h.Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(user.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if p.cut.Load() {
				return nil, errors.New("cut by the test")
			}
			return next.RoundTrip(r)
		})
	})
	o := registration.Options{
		Scope: instance.Scope{Namespaces: []string{h.namespace}}, Namespace: h.namespace, Name: "chandler", Version: "v1.2.3",
		Heartbeat: time.Second, Sandbox: addonsv1.SandboxSeccomp, Reads: reads, Controllers: p.controllers, Die: func(err error) { p.dead <- err },
	}
	m := manager.Options{Scheme: apiserver.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", MapperProvider: instance.NewMapper}
	for _, c := range change {
		c(&o, &m)
	}
	m.Cache = o.Scope.CacheOptions(time.Hour, instance.Version)
	mgr, err := manager.New(config, m)
	h.Expect(err).NotTo(HaveOccurred())
	p.Registration, err = registration.New(mgr, o)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(mgr.Add(p.Registration)).To(Succeed())
	h.Expect(mgr.Add(p.Standby())).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() { p.ended <- mgr.Start(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if !p.cut.Load() {
			p.end()
		}
	})
	return p
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// controllers take a moment to end, in which the object has to stay.
func (p *process) controllers(ctx context.Context) error {
	p.starts.Add(1)
	p.working.Store(1)
	<-ctx.Done()
	time.Sleep(300 * time.Millisecond)
	p.working.Store(0)
	return nil
}

// end stops the process in order.
func (p *process) end() {
	p.h.t.Helper()
	p.stop()
	select {
	case err := <-p.ended:
		p.ended <- err
	case <-time.After(patience):
		p.h.t.Error("the process doesn't end")
	}
}

// withLease elects a leader by a lease that runs out after two seconds.
func withLease(o *registration.Options, m *manager.Options) {
	o.LeaderElection, o.LeaseName = true, "lease-"+o.Name
	m.LeaderElection, m.LeaderElectionID, m.LeaderElectionNamespace = true, o.LeaseName, o.Namespace
	m.LeaderElectionReleaseOnCancel = true
	lease, renew, retry := 2*time.Second, 1500*time.Millisecond, 300*time.Millisecond
	m.LeaseDuration, m.RenewDeadline, m.RetryPeriod = &lease, &renew, &retry
}

func withHeartbeat(d time.Duration) processOption {
	return func(o *registration.Options, _ *manager.Options) { o.Heartbeat = d }
}

func withNamespaces(names ...string) processOption {
	return func(o *registration.Options, _ *manager.Options) { o.Scope.Namespaces = names }
}

// awaitWorking waits until the controllers run.
func (p *process) awaitWorking(within time.Duration, why string) {
	p.h.t.Helper()
	p.h.Eventually(p.working.Load).WithTimeout(within).Should(Equal(int32(1)), why)
}

// get returns the instance's object, nil if there is none.
func (h *home) get() *addonsv1.ProviderInstance {
	pi := &addonsv1.ProviderInstance{}
	err := h.s.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "chandler"}, pi)
	if client.IgnoreNotFound(err) != nil {
		h.t.Error(err)
	}
	if err != nil {
		return nil
	}
	return pi
}

// says returns "status reason" of a condition.
func (h *home) says(condition string) func() string {
	return func() string {
		if pi := h.get(); pi != nil {
			if c := conditions.Get(pi, condition); c != nil {
				return string(c.Status) + " " + c.Reason
			}
		}
		return "nothing"
	}
}

// edit changes the object as a person would.
func (h *home) edit(change func(*addonsv1.ProviderInstance)) {
	h.t.Helper()
	pi := h.get()
	before := pi.DeepCopy()
	change(pi)
	h.Expect(h.s.Patch(h.t.Context(), pi, client.MergeFrom(before))).To(Succeed())
}

// requests are those of the user so far.
func (h *home) requests() []audit.Event {
	h.t.Helper()
	return h.s.Audit.Beginning().Requests(h.t, audit.By(h.user))
}

// expectNothingForbidden looks for requests that RBAC refused.
func (h *home) expectNothingForbidden() {
	h.t.Helper()
	for _, e := range h.requests() {
		if audit.Forbidden(&e) {
			h.t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
}

// events are the reasons of the events about the object.
func (h *home) events() []string {
	list := &corev1.EventList{}
	h.Expect(h.s.List(h.t.Context(), list, client.InNamespace(h.namespace))).To(Succeed())
	var reasons []string
	for i := range list.Items {
		if list.Items[i].InvolvedObject.Kind == "ProviderInstance" {
			reasons = append(reasons, list.Items[i].Reason)
		}
	}
	return reasons
}
