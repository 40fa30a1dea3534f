// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/certificates"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
)

const (
	namespace   = "chandler-webhooks"
	serviceName = "chandler-webhook-service"
	lifetime    = 6 * time.Second
	patience    = 30 * time.Second
	// preStop is for requests under way to a replica that is to end, as in config/shared.
	preStop = time.Second
)

// TestRotation has two replicas serve an API server, with the rights of
// config/shared-selfsigned and certificates that live for seconds. Each request that the
// API server makes is a connection of its own. None may fail while certificates expire,
// while the authority is replaced, or while one replica is replaced.
func TestRotation(t *testing.T) {
	long.Test(t)
	g := NewWithT(t)
	w := newWorld(t)
	a, b := w.startReplica(), w.startReplica()
	w.balance(a, b)

	g.Eventually(w.ask, patience, 100*time.Millisecond).Should(Succeed(), "the two make an authority, and tell the API server")
	failures := w.askAllTheTime()
	first := map[string]*x509.Certificate{a.address: w.served(a), b.address: w.served(b)}
	authority := w.authority()
	g.Expect(first[a.address].CheckSignatureFrom(authority)).To(Succeed())
	g.Expect(first[b.address].CheckSignatureFrom(authority)).To(Succeed(), "the two agree on the authority")
	g.Expect(first[a.address].Equal(first[b.address])).To(BeFalse(), "but each has its own certificate")

	for _, replica := range []*replica{a, b} {
		g.Eventually(func() time.Time { return w.served(replica).NotBefore }, patience, 200*time.Millisecond).
			Should(BeTemporally(">", first[replica.address].NotAfter), "the first certificate has expired, and others have come")
	}
	g.Expect(w.authority().Equal(authority)).To(BeTrue(), "all by the same authority")
	g.Expect(failures()).To(BeEmpty())

	// A user whose authority's key is lost, or stolen, deletes the Secret.
	g.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certificates.SecretName}})).To(Succeed())
	// All are looked at together: the while is short, and may be over for some before it is for others.
	both := map[string][]*x509.Certificate{}
	g.Eventually(func() int {
		for _, bundle := range w.bundles() {
			if len(bundle.trusted) == 2 {
				both[bundle.of] = bundle.trusted
			}
		}
		return len(both)
	}, patience, 50*time.Millisecond).Should(Equal(len(w.bundles())), "each trusts both authorities for a while")
	successor := w.authority()
	g.Expect(successor.Equal(authority)).To(BeFalse())
	for of, trusted := range both {
		g.Expect(trusted).To(ConsistOf(successor, authority), of)
	}
	for _, replica := range []*replica{a, b} {
		g.Eventually(func() error { return w.served(replica).CheckSignatureFrom(successor) }, patience, 100*time.Millisecond).Should(Succeed())
	}
	for _, bundle := range w.bundles() {
		g.Eventually(func() []*x509.Certificate { return w.bundles()[bundle.of].trusted }, patience, 100*time.Millisecond).
			Should(ConsistOf(successor), "%s stops trusting what no certificate in use is signed by", bundle.of)
	}
	g.Expect(failures()).To(BeEmpty())

	// A rolling update: the successor of a replica serves before that goes.
	c := w.startReplica()
	g.Eventually(func() *x509.Certificate { return w.served(c) }, patience, 100*time.Millisecond).ShouldNot(BeNil())
	w.balance(b, c)
	time.Sleep(preStop)
	a.stop()
	g.Consistently(failures, lifetime, 500*time.Millisecond).Should(BeEmpty())
	g.Expect(w.forbidden()).To(BeEmpty(), "the rights are enough")
}

// TestRepair takes the bundles away, as applying the manifests anew does.
func TestRepair(t *testing.T) {
	long.Test(t)
	g := NewWithT(t)
	w := newWorld(t)
	w.balance(w.startReplica())
	g.Eventually(w.ask, patience, 100*time.Millisecond).Should(Succeed())

	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: certificates.ConfigurationName}, configuration)).To(Succeed())
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = nil
	}
	g.Expect(w.client.Update(t.Context(), configuration)).To(Succeed())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: crdName}, crd)).To(Succeed())
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	g.Expect(w.client.Update(t.Context(), crd)).To(Succeed())
	for _, bundle := range w.bundles() {
		g.Eventually(func() []*x509.Certificate { return w.bundles()[bundle.of].trusted }, patience, 50*time.Millisecond).
			Should(ConsistOf(w.authority()), "%s has its bundle again", bundle.of)
	}
	g.Eventually(w.ask, patience, 100*time.Millisecond).Should(Succeed())

	// At rest nothing is written: the objects keep their versions over several renewals.
	before := w.versions()
	time.Sleep(2 * lifetime)
	g.Expect(w.versions()).To(Equal(before))
	g.Expect(w.forbidden()).To(BeEmpty())
}

// bundle holds the authorities that one object trusts.
type bundle struct {
	of      string
	trusted []*x509.Certificate
}

// bundles returns those of all that refers to the Service, by its name.
func (w *world) bundles() map[string]bundle {
	w.t.Helper()
	all := map[string]bundle{}
	add := func(of string, data []byte) {
		var trusted []*x509.Certificate
		if len(bytes.TrimSpace(data)) > 0 {
			var err error
			if trusted, err = cert.ParseCertsPEM(data); err != nil {
				w.t.Fatal(err)
			}
		}
		all[of] = bundle{of: of, trusted: trusted}
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: certificates.ConfigurationName}, configuration); err != nil {
		w.t.Fatal(err)
	}
	for _, webhook := range configuration.Webhooks {
		add(webhook.Name, webhook.ClientConfig.CABundle)
	}
	mutating := &admissionv1.MutatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: certificates.MutatingConfigurationName}, mutating); err != nil {
		w.t.Fatal(err)
	}
	for _, webhook := range mutating.Webhooks {
		add(webhook.Name, webhook.ClientConfig.CABundle)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
		w.t.Fatal(err)
	}
	add(crdName, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	return all
}

func (w *world) versions() []string {
	w.t.Helper()
	configuration, crd := &admissionv1.ValidatingWebhookConfiguration{}, &apiextensionsv1.CustomResourceDefinition{}
	for name, object := range map[string]client.Object{certificates.ConfigurationName: configuration, crdName: crd} {
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			w.t.Fatal(err)
		}
	}
	return []string{configuration.ResourceVersion, crd.ResourceVersion}
}

// authority is the one in the Secret, or nil.
func (w *world) authority() *x509.Certificate {
	w.t.Helper()
	secret := &corev1.Secret{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: certificates.SecretName}, secret)
	if err != nil {
		return &x509.Certificate{}
	}
	parsed, err := cert.ParseCertsPEM(secret.Data["ca.crt"])
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed[0]
}

// served returns the certificate that the replica shows to a new connection, or nil.
func (w *world) served(r *replica) *x509.Certificate {
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(w.t.Context(), "tcp", r.address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// forbidden returns the requests of the replicas that the API server denied.
func (w *world) forbidden() []string {
	w.t.Helper()
	events, err := audit.Read(w.audit)
	if err != nil {
		w.t.Fatal(err)
	}
	var found []string
	for _, event := range events {
		if event.ImpersonatedUser != nil && audit.Forbidden(&event) {
			found = append(found, event.Verb+" "+event.RequestURI)
		}
	}
	return found
}

// askAllTheTime makes requests until the test ends. It returns a function that returns
// the failures.
func (w *world) askAllTheTime() func() []error {
	ctx, cancel := context.WithCancel(w.t.Context())
	var mu sync.Mutex
	var failures []error
	var group sync.WaitGroup
	total := 0
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				err := w.ask()
				mu.Lock()
				total++
				if err != nil && ctx.Err() == nil {
					failures = append(failures, fmt.Errorf("%s: %w", time.Now().Format(time.StampMilli), err))
				}
				mu.Unlock()
			}
		})
	}
	w.t.Cleanup(func() {
		cancel()
		group.Wait()
		w.t.Logf("%d requests were answered by the webhooks, %d failed", total, len(failures))
	})
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return errorsOrNone(failures)
	}
}

func errorsOrNone(failures []error) []error {
	if len(failures) > 5 {
		return append(failures[:5:5], errors.New("and more"))
	}
	return append([]error(nil), failures...)
}

// balance sends new connections to these replicas in turn, as a Service does.
func (w *world) balance(replicas ...*replica) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backends = nil
	for _, r := range replicas {
		w.backends = append(w.backends, r.address)
	}
}

// next backend.
func (w *world) next() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.backends) == 0 {
		return "", false
	}
	w.turn++
	return w.backends[w.turn%len(w.backends)], true
}

func (w *world) forward(from net.Conn) {
	defer from.Close()
	address, ok := w.next()
	if !ok {
		return
	}
	to, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	pipe(from, to)
}
