// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/webhooks"
)

const (
	instanceHook = "validation.providerinstance.addons.cluster.x-k8s.io"
	instancePath = "/validate-addons-cluster-x-k8s-io-v1beta1-providerinstance"
)

// shared is the deployment that instances share: replicas of the webhook that
// know nothing of one another, and get requests in turn, behind one address.
type shared struct {
	client.Client
	clock  *testclock.FakePassiveClock
	server *httptest.Server
	config *rest.Config
	asked  atomic.Int64
}

// startShared starts a control plane, which asks the webhook from now on. What
// is prepared before is stored without.
func startShared(t *testing.T, replicas int, prepare func(client.Client)) *shared {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, admissionv1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		Name: "instances", CRDPaths: []string{"../config/crd/bases/addons.cluster.x-k8s.io_providerinstances.yaml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	admin, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(admin)
	}

	s := &shared{Client: admin, config: cp.Config(), clock: testclock.NewFakePassiveClock(time.Now())}
	user, err := cp.AddUser("webhooks")
	if err != nil {
		t.Fatal(err)
	}
	mayList(t, admin, "webhooks")
	var handlers []http.Handler
	for range replicas {
		reader, err := client.New(user.Config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		hook := &webhooks.ProviderInstance{Arbiter: arbiter.New(reader, arbiter.NewObserver(s.clock)), Reviews: reader}
		handlers = append(handlers, admission.WithValidator(scheme, hook))
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(instancePath, func(w http.ResponseWriter, r *http.Request) {
		handlers[int(s.asked.Add(1))%replicas].ServeHTTP(w, r)
	})
	s.server = httptest.NewUnstartedServer(mux)
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	s.configure(t, certificate)
	return s
}

// mayList gives what arbitration needs.
func mayList(t *testing.T, c client.Client, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"providerinstances"}, Verbs: []string{"list"}},
			{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// configure installs the generated configuration, and waits until the API
// server calls the webhook.
func (s *shared) configure(t *testing.T, ca []byte) {
	t.Helper()
	manifest, err := os.ReadFile("../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "instances"}}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		generated := &admissionv1.ValidatingWebhookConfiguration{}
		if err := decoder.Decode(generated); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, hook := range generated.Webhooks {
			if hook.Name == instanceHook {
				hook.ClientConfig = admissionv1.WebhookClientConfig{CABundle: ca, URL: ptr.To(s.server.URL + *hook.ClientConfig.Service.Path)}
				configuration.Webhooks = append(configuration.Webhooks, hook)
			}
		}
	}
	if len(configuration.Webhooks) != 1 {
		t.Fatalf("config/webhook has %d webhooks of name %s", len(configuration.Webhooks), instanceHook)
	}
	if err := s.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	probe := newInstance("probe", addonsv1.ScopeActive, "nowhere")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if refusal, ok := instance.RefusalOf(s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)); ok && refusal.Cause == instance.ClaimOutOfOrder {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the API server doesn't call the webhook")
		}
	}
}

func newInstance(name string, claim addonsv1.ScopeClaim, namespaces ...string) *addonsv1.ProviderInstance {
	return &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: namespaces, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: name + "-1", Claim: claim, ExpirySeconds: 40,
		},
	}
}

// claim is the way of an instance to its scope. It returns the refusal, if there is one.
func (s *shared) claim(ctx context.Context, pi *addonsv1.ProviderInstance) (*instance.Refusal, error) {
	for _, claim := range []addonsv1.ScopeClaim{addonsv1.ScopeClaiming, addonsv1.ScopeActive} {
		next := pi.DeepCopy()
		next.Spec.Claim = claim
		write := func() error { return s.Update(ctx, next) }
		if pi.UID == "" {
			write = func() error { return s.Create(ctx, next) }
		}
		if err := write(); err != nil {
			refusal, ok := instance.RefusalOf(err)
			if !ok {
				return nil, err
			}
			if pi.UID != "" && pi.Spec.Claim != addonsv1.ScopeWaiting {
				pi.Spec.Claim = addonsv1.ScopeWaiting
				err = s.Update(ctx, pi)
			} else {
				err = nil
			}
			return &refusal, err
		}
		next.DeepCopyInto(pi)
	}
	return nil, nil
}

func (s *shared) mustClaim(t *testing.T, pi *addonsv1.ProviderInstance) {
	t.Helper()
	if refusal, err := s.claim(t.Context(), pi); err != nil || refusal != nil {
		t.Fatalf("%s: %+v, %v", pi.Name, refusal, err)
	}
}

func (s *shared) mustBeRefused(t *testing.T, pi *addonsv1.ProviderInstance, cause metav1.CauseType) instance.Refusal {
	t.Helper()
	refusal, err := s.claim(t.Context(), pi)
	if err != nil || refusal == nil || refusal.Cause != cause {
		t.Fatalf("%s: %+v, %v; want %s", pi.Name, refusal, err, cause)
	}
	return *refusal
}

func (s *shared) pass(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// beat writes a heartbeat, as instances do. Its time says nothing.
func (s *shared) beat(t *testing.T, pi *addonsv1.ProviderInstance) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"heartbeatTime": metav1.NowMicro()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Status().Patch(t.Context(), pi, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatalf("a heartbeat: %v", err)
	}
}

// Many races of two and more instances for overlapping scopes, through two
// replicas of the webhook: each ends with one Active, and there are never two.
func TestRacesHaveOneWinner(t *testing.T) {
	s := startShared(t, 2, nil)
	const rounds, racers = 40, 3
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var refusals atomic.Int64
	for round := range rounds {
		g, racing := errgroup.WithContext(ctx)
		won := make(chan struct{})
		var winners sync.Map
		for i := range racers {
			g.Go(func() error {
				pi := newInstance(fmt.Sprintf("racer-%d-%d", round, i), "", fmt.Sprintf("own-%d", i), "common")
				for {
					refusal, err := s.claim(racing, pi)
					if err != nil {
						return err
					}
					if refusal == nil {
						winners.Store(pi.Name, pi)
						close(won) // panics for a second winner
						return nil
					}
					refusals.Add(1)
					select {
					case <-won:
						return nil
					case <-time.After(rand.N(30 * time.Millisecond)):
					}
				}
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		list := &addonsv1.ProviderInstanceList{}
		if err := s.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		active := 0
		for i := range list.Items {
			pi := &list.Items[i]
			if pi.Spec.Claim == addonsv1.ScopeActive {
				active++
				if _, ok := winners.Load(pi.Name); !ok {
					t.Errorf("round %d: %s is Active, and doesn't know", round, pi.Name)
				}
				pi.Spec.Claim = addonsv1.ScopeWaiting
				if err := s.Update(ctx, pi); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Delete(ctx, pi); err != nil {
				t.Fatal(err)
			}
		}
		if active != 1 {
			t.Fatalf("round %d: %d are Active", round, active)
		}
		s.pass(time.Hour) // no replica remembers the losers
	}
	if refusals.Load() < rounds {
		t.Errorf("%d refusals in %d rounds: these were no races", refusals.Load(), rounds)
	}
	t.Logf("%d rounds, %d refusals, %d admissions", rounds, refusals.Load(), s.asked.Load())
}

// TestProviderInstanceAdmission has an instance hold its scope as long as it shows signs of
// life, by the clock of the webhooks. An update of its object takes the way of the claim.
func TestProviderInstanceAdmission(t *testing.T) {
	s := startShared(t, 1, nil)
	ctx := t.Context()
	first, second := newInstance("first", "", "team-a", "team-b"), newInstance("second", "", "team-b")
	s.mustClaim(t, first)

	refusal := s.mustBeRefused(t, second, instance.ScopeTaken)
	for _, part := range []string{"default/first", "namespaces team-a, team-b", "v1.2.3", "holds namespace team-b", "40s after its last heartbeat"} {
		if !strings.Contains(refusal.Message, part) {
			t.Errorf("the refusal doesn't say %q: %s", part, refusal.Message)
		}
	}

	t.Run("heartbeats prolong", func(t *testing.T) {
		s.pass(30 * time.Second)
		s.beat(t, first)
		s.mustBeRefused(t, second, instance.ScopeTaken)
		s.pass(39 * time.Second)
		s.mustBeRefused(t, second, instance.ScopeTaken)
	})
	t.Run("a name that is in use", func(t *testing.T) {
		stranger := first.DeepCopy()
		stranger.Spec.Holder, stranger.Spec.Claim = "stranger", addonsv1.ScopeWaiting
		if refusal, ok := instance.RefusalOf(s.Update(ctx, stranger)); !ok || refusal.Cause != instance.NameTaken || refusal.Field != "spec.holder" {
			t.Errorf("Update() = %+v; want %s", refusal, instance.NameTaken)
		}
	})
	t.Run("a scope is changed with a new claim alone", func(t *testing.T) {
		larger := first.DeepCopy()
		larger.Spec.Namespaces = append(larger.Spec.Namespaces, "team-c")
		if refusal, ok := instance.RefusalOf(s.Update(ctx, larger)); !ok || refusal.Cause != instance.ClaimOutOfOrder {
			t.Errorf("Update() = %+v; want %s", refusal, instance.ClaimOutOfOrder)
		}
	})
	t.Run("a dry run changes nothing", func(t *testing.T) {
		dry := newInstance("dry", addonsv1.ScopeClaiming, "team-d")
		if err := s.Create(ctx, dry, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		other := newInstance("other", "", "team-d")
		s.mustClaim(t, other)
	})
	t.Run("the filter for all", func(t *testing.T) {
		all := newInstance("all", addonsv1.ScopeWaiting, "team-e")
		all.Spec.WatchFilter = addonsv1.SharedWatchFilter
		if err := s.Create(ctx, all); err == nil || !strings.Contains(err.Error(), "choose another watch filter") {
			t.Errorf("Create() = %v", err)
		}
	})
	t.Run("anyone may label", func(t *testing.T) {
		if err := s.Patch(ctx, first, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`))); err != nil {
			t.Error(err)
		}
	})
	t.Run("a deleted object holds until it expires", func(t *testing.T) {
		third := newInstance("third", "", "team-f")
		s.mustClaim(t, third)
		s.mustBeRefused(t, newInstance("fourth", "", "team-f"), instance.ScopeTaken)
		if err := s.Delete(ctx, third); err != nil {
			t.Fatal(err)
		}
		fourth := newInstance("fourth", "", "team-f")
		if refusal := s.mustBeRefused(t, fourth, instance.ScopeTaken); !strings.Contains(refusal.Message, "deleted without its process") {
			t.Error(refusal.Message)
		}
		s.pass(40 * time.Second)
		s.mustClaim(t, fourth)
	})
	t.Run("expired", func(t *testing.T) {
		s.pass(40 * time.Second)
		s.mustClaim(t, second)
		s.mustBeRefused(t, first, instance.ScopeTaken)
	})
}

// While no webhook runs nobody can claim, and who runs continues.
func TestWithoutWebhooks(t *testing.T) {
	s := startShared(t, 1, nil)
	ctx := t.Context()
	running := newInstance("running", "", "team-a")
	s.mustClaim(t, running)
	s.server.Close()

	for _, claim := range []addonsv1.ScopeClaim{addonsv1.ScopeWaiting, addonsv1.ScopeClaiming} {
		err := s.Create(ctx, newInstance("new", claim, "team-b"))
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), instanceHook) {
			t.Errorf("Create() = %v; want a failure of the webhook", err)
		}
	}
	s.beat(t, running)
	if running.Status.HeartbeatTime.IsZero() {
		t.Error("the heartbeat isn't stored")
	}
	if err := s.Delete(ctx, running); err != nil {
		t.Errorf("Delete() = %v", err)
	}
}

// With a thousand instances a claim is still a matter of less than a second.
func TestManyInstances(t *testing.T) {
	const many = 1000
	s := startShared(t, 1, func(c client.Client) {
		for i := range many / 50 {
			if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("runs-%d", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		var g errgroup.Group
		g.SetLimit(16)
		for i := range many {
			g.Go(func() error {
				pi := newInstance(fmt.Sprintf("instance-%d", i), addonsv1.ScopeActive, fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i))
				pi.Namespace = fmt.Sprintf("runs-%d", i%(many/50))
				return c.Create(t.Context(), pi)
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
	start := time.Now()
	s.mustClaim(t, newInstance("one-more", "", "elsewhere"))
	t.Logf("two steps beside %d instances took %v", many, time.Since(start))
	if refusal := s.mustBeRefused(t, newInstance("overlapping", "", "b-999"), instance.ScopeTaken); !strings.Contains(refusal.Message, "runs-19/instance-999") {
		t.Error(refusal.Message)
	}
	if refusal := s.mustBeRefused(t, newInstance("everything", ""), instance.ScopeTaken); !strings.Contains(refusal.Message, "1000 more overlap") {
		t.Error(refusal.Message)
	}
}
