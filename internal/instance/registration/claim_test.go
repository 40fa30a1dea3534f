// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/webhooks"
)

// TestClaim has the real shared deployment decide about two instances of one scope, which are
// in two namespaces.
func TestClaim(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := ownServer(t, crds, clusterCRD)
	w := newWebhook(t, s)
	first, second := newHome(t, s), newHomeNamed(t, s, "second")
	second.bind(first.namespace, "Role", "reads")
	scope := withNamespaces(first.namespace)

	holder := first.start(scope)
	first.Eventually(func() error { return holder.Ready(nil) }).WithTimeout(patience).Should(MatchError(ContainSubstring("WebhookUnavailable")), "without the webhook nothing can be claimed")
	first.Expect(holder.starts.Load()).To(BeZero())
	w.start()
	holder.awaitWorking(patience, "the webhook is back")

	rival := second.start(scope)
	second.Eventually(second.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False ScopeTaken"))
	refused := conditions.Get(second.get(), addonsv1.ScopeHeldCondition)
	second.Expect(refused.Message).To(And(ContainSubstring("ProviderInstance claim/chandler"), ContainSubstring("namespace claim"), ContainSubstring("v1.2.3")), "who holds what, and in which version")
	second.Expect(rival.Ready(nil)).To(MatchError(ContainSubstring("ScopeTaken")))
	generation := second.get().Generation
	second.Consistently(func() any { return conditions.Get(second.get(), addonsv1.ScopeHeldCondition) }).WithTimeout(6*time.Second).Should(Equal(refused), "nothing flaps")
	second.Expect(second.get().Generation).To(Equal(generation))
	second.Expect(rival.starts.Load()).To(BeZero())
	second.Eventually(second.events).WithTimeout(patience).Should(ContainElement("ScopeTaken"))

	second.edit(func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeWaiting })
	second.Eventually(func() bool {
		pi := second.get()
		return pi.Spec.Claim == addonsv1.ScopeClaiming && pi.Status.Grant.Holder == pi.Spec.Holder && pi.Status.Grant.State == addonsv1.GrantRefused
	}).WithTimeout(patience).Should(BeTrue(), "it still wants its scope")
	second.Expect(second.get().Status.Grant.Message).To(Equal(refused.Message))
	second.Consistently(second.says(addonsv1.ScopeHeldCondition)).WithTimeout(3 * time.Second).Should(Equal("False ScopeTaken"))

	w.stop()
	first.Consistently(holder.working.Load).WithTimeout(6*time.Second).Should(Equal(int32(1)), "who runs needs no webhook, for longer than the expiry")
	second.Expect(second.says(addonsv1.ScopeHeldCondition)()).To(Equal("False ScopeTaken"), "nobody gives or takes anything meanwhile")
	w.start()

	holder.end()
	rival.awaitWorking(3*time.Second, "the scope is free at once when the holder ends in order")
	second.Eventually(second.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"))

	third := first.start(scope)
	first.Eventually(first.says(addonsv1.ScopeHeldCondition)).WithTimeout(patience).Should(Equal("False ScopeTaken"))
	rival.cut.Store(true)
	third.awaitWorking(patience, "the second one is silent")
	second.Expect(rival.dead).To(Receive(), "it has ended before")
	first.expectNothingForbidden()
	second.expectNothingForbidden()
}

// webhookServer is a process that serves the ProviderInstance webhook, and grants scopes.
type webhookServer struct {
	t    *testing.T
	s    *server
	port int
	dir  string
	end  func()
}

func newWebhook(t *testing.T, s *server) *webhookServer {
	t.Helper()
	g := NewWithT(t)
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	w := &webhookServer{t: t, s: s, dir: t.TempDir()}
	g.Expect(os.WriteFile(filepath.Join(w.dir, "tls.crt"), chain, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(w.dir, "tls.key"), key, 0o600)).To(Succeed())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	w.port = l.Addr().(*net.TCPAddr).Port
	g.Expect(l.Close()).To(Succeed())

	data, err := os.ReadFile("../../../config/webhook/manifests.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		if strings.Contains(document, "kind: Validating") {
			g.Expect(yaml.Unmarshal([]byte(document), configuration)).To(Succeed())
		}
	}
	configuration.Webhooks = slices.DeleteFunc(configuration.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return !strings.HasPrefix(w.Name, "validation.providerinstance.")
	})
	g.Expect(configuration.Webhooks).To(HaveLen(1))
	for i := range configuration.Webhooks {
		hook := &configuration.Webhooks[i]
		hook.ClientConfig = admissionv1.WebhookClientConfig{
			URL: ptr.To("https://127.0.0.1:" + strconv.Itoa(w.port) + *hook.ClientConfig.Service.Path), CABundle: chain,
		}
	}
	g.Expect(s.Create(t.Context(), configuration)).To(Succeed())
	return w
}

func (w *webhookServer) start() {
	w.t.Helper()
	g := NewWithT(w.t)
	mgr, err := manager.New(w.s.Config(), manager.Options{
		Scheme: apiserver.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", MapperProvider: instance.NewMapper,
		Controller:    config.Controller{SkipNameValidation: ptr.To(true)}, // it is started more than once in this process
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: w.port, CertDir: w.dir}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect((&webhooks.ProviderInstance{Reviews: mgr.GetClient()}).SetupWithManager(mgr)).To(Succeed())
	g.Expect((&providerinstance.Granter{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Memory: grant.NewMemory(clock.RealClock{}), Clock: clock.RealClock{},
	}).SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.end = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(w.stop)
}

func (w *webhookServer) stop() {
	w.end()
	w.end = func() {}
}
