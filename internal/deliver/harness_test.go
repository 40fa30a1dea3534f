// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/secretwriter"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// config is that of the workload cluster of all tests. It has a controller
// manager, a scheduler and a simulated node, so Deployments and Jobs come to an end.
var config *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait for simulated Jobs and Pods most of the time.
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("8")
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Name: "deliver", Workers: true, Nodes: 2})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cluster.Stop() }()
	config = cluster.Config()
	config.QPS = -1
	return m.Run()
}

// meter counts the requests to the cluster, and can break the connection.
type meter struct {
	mu     sync.Mutex
	counts map[string]int // "PATCH deployments"
	writes int
	log    []string
	reads  []string
	// failFrom is the number of the first write that fails, with all after it; 0 is
	// never. With done, that one is done and only its answer lost.
	failFrom int
	done     bool
	// unwatchable is a resource that the API server refuses to watch.
	unwatchable string
	// pair are requests of which each is sent once the other one has begun, too.
	pair *pair
}

// pair are two requests.
type pair struct {
	is    [2]func(*http.Request) bool
	begun [2]chan struct{}
	once  [2]sync.Once
}

// await holds a request of the pair until the other one has begun.
func (p *pair) await(r *http.Request) error {
	for i := range p.is {
		if !p.is[i](r) {
			continue
		}
		p.once[i].Do(func() { close(p.begun[i]) })
		select {
		case <-p.begun[1-i]:
		case <-r.Context().Done():
			return fmt.Errorf("the request beside it didn't begin: %w", r.Context().Err())
		}
	}
	return nil
}

// beside expects two requests to be under way at the same time. They fail with the context.
func (m *meter) beside(one, other func(*http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pair = &pair{is: [2]func(*http.Request) bool{one, other}, begun: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

var errCut = errors.New("connection cut by the test")

// metered is one connection through a meter.
type metered struct {
	*meter
	next http.RoundTripper
}

func (m metered) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	write := verb != http.MethodGet && verb != "WATCH" && !strings.Contains(r.URL.RawQuery, "dryRun")
	m.mu.Lock()
	m.counts[verb]++
	if verb == http.MethodGet {
		m.reads = append(m.reads, r.URL.Path)
	}
	if write {
		m.writes++
		m.log = append(m.log, verb+" "+r.URL.Path)
	}
	cut := m.failFrom > 0 && m.writes >= m.failFrom
	last := write && m.writes == m.failFrom && m.done
	pair := m.pair
	refused := verb == "WATCH" && strings.HasSuffix(r.URL.Path, "/"+m.unwatchable) && m.unwatchable != ""
	m.mu.Unlock()
	if refused {
		refusal := `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(refusal)), Request: r,
		}, nil
	}
	if cut && !last {
		return nil, errCut
	}
	if pair != nil {
		if err := pair.await(r); err != nil {
			return nil, err
		}
	}
	resp, err := m.next.RoundTrip(r)
	if last {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errCut
	}
	return resp, err
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts, m.writes, m.log, m.reads = map[string]int{}, 0, nil, nil
}

func (m *meter) total() (requests, writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.counts {
		requests += n
	}
	return requests, m.writes
}

// cut has the k-th write from now on fail, with all after it. With done, that one is done and only its answer lost.
func (m *meter) cut(k int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failFrom, m.done = k, done
}

// refuseWatch has the API server refuse to watch a resource from now on.
func (m *meter) refuseWatch(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unwatchable = resource
}

// env is a Deliverer with a connection of its own.
type env struct {
	*WithT
	t      *testing.T
	ctx    context.Context
	meter  *meter
	target deliver.Target
	d      *keeper
	proofs proofs
	wakeup chan struct{}
	clock  *offsetClock
	stop   context.CancelFunc
}

func newEnv(t *testing.T) *env {
	t.Helper()
	if config == nil {
		t.Skip("needs a cluster")
	}
	e := &env{WithT: NewWithT(t), t: t, ctx: t.Context(), meter: &meter{counts: map[string]int{}}, clock: &offsetClock{}, proofs: proofs{kept: map[deliver.Release]string{}}}
	e.restart()
	return e
}

// restart is a crash of the controller and a new start.
func (e *env) restart() {
	if e.stop != nil {
		e.stop()
		e.d.Forget(e.target.Name)
	}
	e.meter.mu.Lock()
	e.meter.failFrom = 0
	e.meter.mu.Unlock()
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return metered{e.meter, rt} })
	c, err := client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	byHTTP, err := rest.HTTPClientFor(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	secrets, err := secretwriter.New(cfg, byHTTP)
	e.Expect(err).NotTo(HaveOccurred())
	dyn, err := dynamic.NewForConfig(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	e.t.Cleanup(cancel)
	e.stop = cancel
	wakeup := make(chan struct{}, 1)
	e.wakeup = wakeup
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	e.target = deliver.Target{Name: e.t.Name(), Client: c, Dynamic: dyn, Secrets: secrets, Discovery: func(context.Context) (discovery.DiscoveryInterface, error) { return disco, nil }, Context: ctx}
	e.d = &keeper{proofs: &e.proofs, Deliverer: deliver.New(deliver.Options{Clock: e.clock, Notify: func(string) {
		select {
		case wakeup <- struct{}{}:
		default:
		}
	}})}
}

// namespace makes a namespace for a test.
func (e *env) namespace() string {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	e.Expect(e.target.Client.Create(e.ctx, ns)).To(Succeed())
	return ns.Name
}

// alone returns an env with a namespace for a test.
func alone(t *testing.T) (*env, string) {
	t.Helper()
	e := newEnv(t)
	return e, e.namespace()
}

// beside returns an env with a namespace for a test that runs beside others.
func beside(t *testing.T) (*env, string) {
	t.Helper()
	t.Parallel()
	return alone(t)
}

// chart is a rendering by hand.
type chart struct {
	version  string
	crds     string
	manifest string
	hooks    []job.Hook
}

func (c chart) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", c))
	return hex.EncodeToString(sum[:])
}

func (c chart) render(t *testing.T) *deliver.Rendering {
	t.Helper()
	parse := func(text string) []*unstructured.Unstructured {
		objects, err := record.ParseManifest(text)
		must.Succeed(t, err)
		return objects
	}
	return &deliver.Rendering{
		Result: job.Result{
			Name: "demo", Version: c.version, AppVersion: "9",
			Chart: fmt.Appendf(nil, `{"metadata":{"name":"demo","version":%q,"appVersion":"9","apiVersion":"v2"}}`, c.version),
			CRDs:  parse(c.crds), Objects: parse(c.manifest), Manifest: c.manifest, Hooks: c.hooks,
			Generated: job.Generated{"password": "s3cret"},
		},
		Digest: c.digest(), Values: map[string]any{"a": "b"},
	}
}

// want is an add-on that is to be of a chart.
func (e *env) want(ns string, c chart) deliver.Desired {
	return deliver.Desired{
		Release: deliver.Release{Namespace: ns, Name: "demo"},
		Owner:   "fleet/cluster-a",
		Terms: deliver.Terms{
			Stack: "platform", Spec: "spec", DeletionPolicy: addonsv1.DeletionPolicyDelete, DataPolicy: addonsv1.DataPolicyDelete,
		},
		Digest:          func(context.Context, string) (string, error) { return c.digest(), nil },
		DigestBy:        func(string) string { return c.digest() },
		CreateNamespace: true, Adoption: addonsv1.AdoptionPolicyFail,
		ProgressDeadline: 2 * time.Minute,
		WatchFilter:      "blue",
		Render: func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
			return c.render(e.t), nil
		},
	}
}

// expectWrites expects so many writes since the meter was reset.
func (e *env) expectWrites(n int, why ...string) {
	e.t.Helper()
	_, writes := e.meter.total()
	e.Expect(writes).To(Equal(n), "%v: %v", why, e.meter.log)
}

// ensure calls Ensure once.
func (e *env) ensure(want deliver.Desired) deliver.Outcome {
	e.t.Helper()
	o, err := e.d.Ensure(e.ctx, e.target, want)
	e.Expect(err).NotTo(HaveOccurred())
	return o
}

// ensureUntil calls Ensure as a controller does, until its outcome does.
func (e *env) ensureUntil(want deliver.Desired, done func(deliver.Outcome) bool) deliver.Outcome {
	e.t.Helper()
	return e.drive(func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, e.target, want) }, done)
}

// reach calls Ensure as a controller does, until its outcome has a reason.
func (e *env) reach(want deliver.Desired, reason string) deliver.Outcome {
	e.t.Helper()
	return e.ensureUntil(want, func(o deliver.Outcome) bool { return o.Reason == reason })
}

// settle calls Ensure as a controller does, until the add-on is ready, failed or refused.
func (e *env) settle(want deliver.Desired) deliver.Outcome {
	e.t.Helper()
	return e.ensureUntil(want, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonReady || o.Phase == addonsv1.AddonFailed })
}

// ensureAs calls Ensure once, and expects a reason.
func (e *env) ensureAs(want deliver.Desired, reason string) deliver.Outcome {
	e.t.Helper()
	o := e.ensure(want)
	e.Expect(o.Reason).To(Equal(reason), "%+v", o)
	return o
}

// settleAs calls Ensure as a controller does, and expects that it ends with a reason.
func (e *env) settleAs(want deliver.Desired, reason string) deliver.Outcome {
	e.t.Helper()
	o := e.settle(want)
	e.Expect(o.Reason).To(Equal(reason), "%+v", o)
	return o
}

func (e *env) install(want deliver.Desired) deliver.Outcome {
	e.t.Helper()
	o := e.settle(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), "%+v", o)
	return o
}

func (e *env) remove(r deliver.Release, leaving ...deliver.Release) deliver.Outcome {
	e.t.Helper()
	return e.drive(func() (deliver.Outcome, error) { return e.d.Remove(e.ctx, e.target, r, leaving...) },
		func(o deliver.Outcome) bool { return o.Gone || o.Phase == addonsv1.AddonFailed })
}

// removed is remove, and expects that the add-on is gone then.
func (e *env) removed(r deliver.Release) deliver.Outcome {
	e.t.Helper()
	o := e.remove(r)
	e.Expect(o.Gone).To(BeTrue(), "%+v", o)
	return o
}

// expectStays expects an object that nobody has deleted.
func (e *env) expectStays(apiVersion, kind, ns, name string) {
	e.t.Helper()
	live := e.get(apiVersion, kind, ns, name)
	e.Expect(live).NotTo(BeNil(), name)
	e.Expect(live.GetDeletionTimestamp()).To(BeNil(), name)
}

// removeOnce calls Remove once.
func (e *env) removeOnce(r deliver.Release) deliver.Outcome {
	e.t.Helper()
	o, err := e.d.Remove(e.ctx, e.target, r)
	e.Expect(err).NotTo(HaveOccurred())
	return o
}

// repair looks at all objects of an add-on.
func (e *env) repair(r deliver.Release) (deliver.Outcome, error) {
	o, _, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: r})
	return o, err
}

// drive calls f when the Deliverer asks for it, or its time has come. It never polls.
func (e *env) drive(f func() (deliver.Outcome, error), done func(deliver.Outcome) bool) deliver.Outcome {
	e.t.Helper()
	limit, tries := time.After(40*time.Second), 0
	for {
		select { // what it says from now on counts
		case <-e.wakeup:
		default:
		}
		o, err := f()
		if err != nil {
			if errors.Is(err, errCut) {
				return o
			}
			if tries++; tries > 20 {
				e.t.Fatal(err)
			}
			e.t.Logf("retrying: %v", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if done(o) {
			return o
		}
		var timer <-chan time.Time
		if o.RetryAfter > 0 {
			timer = time.After(o.RetryAfter)
		}
		select {
		case <-e.wakeup:
		case <-timer:
		case <-limit:
			e.t.Fatalf("got no further than %+v", o)
		}
	}
}

// get reads an object; nil if it is gone.
func (e *env) get(apiVersion, kind, ns, name string) *unstructured.Unstructured {
	e.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: ns, Name: name}, u)
	if client.IgnoreNotFound(err) != nil {
		e.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return u
}

// deny has the API server refuse what an operation on a resource does, unless the expression is true of it. The name of the
// policy is the given one. The message is an expression, too.
func (e *env) deny(name, operations, resource, expression, message string) {
	e.t.Helper()
	e.apply("somebody", strings.NewReplacer("NAME", name, "OPERATIONS", operations, "RESOURCE", resource, "EXPRESSION", expression, "MESSAGE", message).Replace(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [RESOURCE], operations: [OPERATIONS]}]}
  validations: [{expression: "EXPRESSION", messageExpression: "MESSAGE"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`))
}

// apply writes YAML as somebody else.
func (e *env) apply(manager, text string) {
	e.t.Helper()
	objects, err := record.ParseManifest(text)
	e.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		// A server tells of a new kind a moment after it says that the CRD is established.
		e.Eventually(func() error {
			err := e.target.Client.Apply(e.ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership)
			if err != nil && !meta.IsNoMatchError(err) {
				return StopTrying("the object is refused").Wrap(err)
			}
			return err
		}).WithTimeout(time.Minute).Should(Succeed())
	}
}

// records are the release's, as metadata.
func (e *env) records(ns string) map[deliver.Release]deliver.Summary {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	e.Expect(e.target.Client.List(e.ctx, list, client.InNamespace(ns))).To(Succeed())
	return record.Summarize(list.Items)
}

// snapshot is what is in the cluster of an add-on, and of its records.
func (e *env) snapshot(ns string, kinds ...schema.GroupVersionKind) []string {
	e.t.Helper()
	kinds = append(kinds,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service"),
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	var lines []string
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := e.target.Client.List(e.ctx, list, client.MatchingLabels{addonsv1.AddonNamespaceLabel: ns}); err != nil {
			lines = append(lines, "no "+gvk.Kind)
			continue
		}
		for i := range list.Items {
			o := &list.Items[i]
			data, _, _ := unstructured.NestedMap(o.Object, "data")
			lines = append(lines, fmt.Sprintf("%s %s %v %v", gvk.Kind, o.GetName(), data, slices.Sorted(maps.Keys(o.GetLabels()))))
		}
	}
	secrets := &corev1.SecretList{}
	e.Expect(e.target.Client.List(e.ctx, secrets, client.InNamespace(ns))).To(Succeed())
	store := &record.Store{Client: e.target.Client, Release: record.Release{Namespace: ns, Name: "demo"}, Clock: e.clock}
	summaries, err := store.List(e.ctx)
	e.Expect(err).NotTo(HaveOccurred())
	lines = append(lines, fmt.Sprintf("%d secrets", len(secrets.Items)))
	for _, s := range summaries {
		rec, err := store.Load(e.ctx, s)
		e.Expect(err).NotTo(HaveOccurred())
		var keys []string
		if s.Status == deliver.StatusDeployed {
			for _, entry := range rec.State.Inventory {
				keys = append(keys, fmt.Sprintf("%s/%t", entry.Key(), entry.UID != ""))
			}
		}
		lines = append(lines, fmt.Sprintf("record %d %s/%s %s %v %v", s.Revision, s.Status, rec.Helm.Info.Status, s.Version, keys, rec.State.EventsDone))
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], ns, "NS")
	}
	slices.Sort(lines)
	return lines
}

func (e *env) clientset() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(config)
}

// offsetClock is the real clock, set forward.
type offsetClock struct {
	realClock
	mu     sync.Mutex
	offset time.Duration
	still  time.Time // where it stands, zero if it doesn't
}

func (c *offsetClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still.IsZero() {
		return c.still.Add(c.offset)
	}
	return time.Now().Add(c.offset)
}

// stand has the clock stand still, so that nothing becomes old on a busy machine.
func (c *offsetClock) stand() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = time.Now()
}

func (c *offsetClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

type realClock = clock.RealClock

// keeper keeps the proofs of the records, as a controller does in a status: after each call, unless it crashed in it.
type keeper struct {
	*deliver.Deliverer
	proofs *proofs
}

type proofs struct {
	mu   sync.Mutex
	kept map[deliver.Release]string
	// outlives says that a cut connection ends no process: it keeps the proofs.
	outlives bool
}

func (p *proofs) of(r deliver.Release) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[r]
}

func (p *proofs) keep(r deliver.Release, proof string, err error) {
	if errors.Is(err, errCut) && !p.outlives {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[r] = proof
}

func (k *keeper) Ensure(ctx context.Context, t deliver.Target, want deliver.Desired) (deliver.Outcome, error) {
	want.Proof = k.proofs.of(want.Release)
	o, err := k.Deliverer.Ensure(ctx, t, want)
	k.proofs.keep(want.Release, o.Proof, err)
	return o, err
}

func (k *keeper) Remove(ctx context.Context, t deliver.Target, r deliver.Release, leaving ...deliver.Release) (deliver.Outcome, error) {
	return k.Deliverer.Remove(ctx, t, r, k.proofs.of(r), leaving...)
}

func (k *keeper) Repair(ctx context.Context, t deliver.Target, want deliver.Repair) (deliver.Outcome, []repair.Difference, error) {
	want.Proof = k.proofs.of(want.Release)
	return k.Deliverer.Repair(ctx, t, want)
}

func (k *keeper) SetTerms(ctx context.Context, t deliver.Target, r deliver.Release, terms deliver.Terms) error {
	proof, err := k.Deliverer.SetTerms(ctx, t, r, record.ProofOwner(k.proofs.of(r)), k.proofs.of(r), terms)
	k.proofs.keep(r, proof, err)
	return err
}
