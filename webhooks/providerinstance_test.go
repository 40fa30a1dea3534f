// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks"
)

const instanceHook = "validation.providerinstance.addons.cluster.x-k8s.io"

// shared is the webhook of the deployment that instances share, and an API server that asks it.
type shared struct {
	client.Client
	server *httptest.Server
	config *rest.Config
}

func startShared(t *testing.T) *shared {
	t.Helper()
	plane := apiserver.Own(t, controlplane.Options{
		Name: "instances", CRDPaths: []string{"../config/crd/bases/addons.cluster.x-k8s.io_providerinstances.yaml"},
	})
	config := plane.Allow(t, "webhooks", rbacv1.PolicyRule{
		APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"},
	})
	reviews, err := client.New(config, client.Options{Scheme: apiserver.Scheme()})
	must.Succeed(t, err)
	authority, dir := admission.Certificate(t)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	must.Succeed(t, err)
	s := &shared{Client: plane, config: plane.Config()}
	s.server = httptest.NewUnstartedServer(ctrladmission.WithValidator(apiserver.Scheme(), &webhooks.ProviderInstance{Reviews: reviews}))
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	s.configure(t, authority)
	return s
}

// configure installs the generated configuration, and waits until the API
// server calls the webhook.
func (s *shared) configure(t *testing.T, ca []byte) {
	t.Helper()
	must.Succeed(t, s.Create(t.Context(), admission.Configuration(t, "..", s.server.URL, ca, instanceHook)))
	stranger := s.as(t, rest.ImpersonationConfig{UserName: "system:serviceaccount:elsewhere:manager", Groups: []string{"system:masters"}})
	wait.Until(t, patience, "the API server is to call the webhook", func() error {
		err := stranger.Create(t.Context(), newInstance("probe", "nowhere"), client.DryRunAll)
		if s.refusal(err) == nil {
			return fmt.Errorf("it isn't refused: %w", err)
		}
		return nil
	})
}

// as returns a client of another user.
func (s *shared) as(t *testing.T, user rest.ImpersonationConfig) client.Client {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate = user
	c, err := client.New(config, client.Options{Scheme: s.Scheme()})
	must.Succeed(t, err)
	return c
}

// refusal returns why a claim was refused, nil if it wasn't.
func (s *shared) refusal(err error) *metav1.StatusCause {
	if cause, ok := apierrors.StatusCause(err, addonsv1.ScopeForbiddenReason); ok {
		return &cause
	}
	return nil
}

func newInstance(name string, namespaces ...string) *addonsv1.ProviderInstance {
	return &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: namespaces, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: name + "-1", Claim: addonsv1.ScopeClaiming, ExpirySeconds: 40,
		},
	}
}

// edit changes an object, and returns the API server's answer.
func (s *shared) edit(t *testing.T, pi *addonsv1.ProviderInstance, change func(*addonsv1.ProviderInstance)) error {
	t.Helper()
	now := &addonsv1.ProviderInstance{}
	must.Succeed(t, s.Get(t.Context(), client.ObjectKeyFromObject(pi), now))
	change(now)
	return s.Update(t.Context(), now)
}

// say sets the status of an object, as the shared deployment does.
func (s *shared) say(t *testing.T, pi *addonsv1.ProviderInstance, status string) {
	t.Helper()
	if err := s.Status().Patch(t.Context(), pi.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		t.Fatal(err)
	}
}

// TestProviderInstanceSchema has the API server keep the spec for the process that writes it, whether webhooks run or not.
func TestProviderInstanceSchema(t *testing.T) {
	s := startShared(t)
	pi := newInstance("first", "team-a")
	pi.Spec.LeaseName = "lease"
	must.Succeed(t, s.Create(t.Context(), pi))
	const (
		granted = `{"grant":{"holder":"first-1","state":"Granted"}}`
		gone    = `{"conditions":[{"type":"Ready","status":"Unknown","reason":"HeartbeatExpired","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	)
	type edit = func(*addonsv1.ProviderInstance)
	waits := func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeWaiting }
	claims := func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeClaiming }
	stranger := func(pi *addonsv1.ProviderInstance) { pi.Spec.Holder, pi.Spec.LeaseName = "stranger", "" }
	for _, step := range []struct {
		name   string
		status string
		edit   edit
		field  string // that is refused
	}{
		{name: "before it is granted: waits again", edit: waits},
		{name: "and claims again", edit: claims},
		{name: "more namespaces", status: granted, edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.Namespaces = []string{"team-a", "team-b"} }, field: "spec"},
		{name: "a filter", edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.WatchFilter = "blue" }, field: "spec"},
		{name: "a shorter expiry", edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.ExpirySeconds = 4 }, field: "spec"},
		{name: "another lease", edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.LeaseName = "other" }, field: "spec"},
		{name: "a stranger beside it", edit: stranger, field: "spec.holder"},
		{name: "another version", edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.Version = "v2" }},
		{name: "the next leader, of another scope", edit: func(pi *addonsv1.ProviderInstance) {
			pi.Spec.Holder, pi.Spec.Namespaces = "first-2", []string{"team-b"}
		}},
		{name: "waits", status: `{"grant":{"holder":"first-2","state":"Granted"}}`, edit: waits},
		{name: "claims what it gave up", edit: claims, field: "spec.claim"},
		{name: "another holder claims", edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.Holder = "first-3"; claims(pi) }},
		{name: "a stranger after it", status: gone, edit: stranger},
		{name: "an expiry of more than five minutes", status: gone, edit: func(pi *addonsv1.ProviderInstance) { pi.Spec.Holder, pi.Spec.ExpirySeconds = "first-4", 301 }, field: "spec.expirySeconds"},
		{name: "the filter for all", edit: func(pi *addonsv1.ProviderInstance) {
			pi.Spec.Holder, pi.Spec.WatchFilter = "first-4", addonsv1.SharedWatchFilter
		}, field: "spec.watchFilter"},
	} {
		if step.status != "" {
			s.say(t, pi, step.status)
		}
		err := s.edit(t, pi, step.edit)
		if (err != nil) != (step.field != "") || err != nil && !strings.Contains(err.Error(), step.field+":") {
			t.Errorf("%s: Update() = %v, want %q to be refused", step.name, err, step.field)
		}
	}
}

// While no webhook runs nobody can claim, and who runs continues.
func TestWithoutWebhooks(t *testing.T) {
	long.InCI(t)
	s := startShared(t)
	running := newInstance("running", "team-a")
	must.Succeed(t, s.Create(t.Context(), running))
	s.server.Close()

	err := s.Create(t.Context(), newInstance("new", "team-b"))
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), instanceHook) {
		t.Errorf("Create() = %v; want a failure of the webhook", err)
	}
	s.say(t, running, `{"heartbeatTime":"2026-01-01T00:00:00.000000Z"}`)
	if err := s.Delete(t.Context(), running); err != nil {
		t.Errorf("Delete() = %v", err)
	}
}
