// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// helmGetter gives Helm a cluster.
type helmGetter struct {
	config    *rest.Config
	namespace string
}

func (g helmGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g helmGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	d, err := discovery.NewDiscoveryClientForConfig(g.config)
	return memory.NewMemCacheClient(d), err
}

func (g helmGetter) ToRESTMapper() (meta.RESTMapper, error) {
	d, err := g.ToDiscoveryClient()
	return restmapper.NewDeferredDiscoveryRESTMapper(d), err
}

func (g helmGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}

// helmInstalls installs a chart as "helm install" does.
func (tn *tenant) helmInstalls(s *server, name string, c chart) {
	tn.t.Helper()
	s.helmInstalls(tn.t, name, tn.namespace, c.archive(name, "1.0.0"), nil)
}

// helmInstalls installs a packed chart as "helm install" does, and returns the release.
func (s *server) helmInstalls(t *testing.T, name, namespace string, archive []byte, values map[string]any, more ...func(*action.Install)) *helmrelease.Release {
	t.Helper()
	g := NewWithT(t)
	config := action.NewConfiguration()
	g.Expect(config.Init(helmGetter{s.Config(), namespace}, namespace, "secret")).To(Succeed())
	ch, err := loader.LoadArchive(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = name, namespace
	install.WaitStrategy, install.Timeout = helmkube.HookOnlyStrategy, time.Minute
	for _, change := range more {
		change(install)
	}
	release, err := install.Run(ch, values)
	g.Expect(err).NotTo(HaveOccurred(), name)
	return release.(*helmrelease.Release)
}

func secretTemplate(name, fields string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n" + fields
}

// keepsByLookup is how many charts keep a password.
var keepsByLookup = chart{
	"values.yaml": "text: default\n",
	"templates/db.yaml": `{{ $old := lookup "v1" "Secret" .Release.Namespace "db" }}` + secretTemplate("db", `data:
  password: {{ if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 16 | b64enc }}{{ end }}
  text: {{ .Values.text | b64enc }}
`),
	"templates/list.yaml": configMap("found", `"{{ range (lookup "v1" "Secret" .Release.Namespace "").items }}{{ .metadata.name }} {{ end }}of {{ len (lookup "v1" "Secret" .Release.Namespace "foreign") }}"`),
}

func TestHelmReleaseKeepsWhatItsChartGenerated(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	s := workloadServer(t, 2)
	for name, c := range map[string]struct {
		chart  chart
		policy addonsv1.AdoptionPolicy
	}{
		"by lookup adopted":  {keepsByLookup, addonsv1.AdoptionPolicyAdopt},
		"by lookup if equal": {keepsByLookup, addonsv1.AdoptionPolicyAdoptIfEqual},
		"without lookup": {chart{"templates/db.yaml": secretTemplate("db", "stringData:\n  password: {{ randAlphaNum 16 }}\n"+
			"  file: |\n    user: me\n    password: {{ uuidv4 }}\n    end: x\n")}, addonsv1.AdoptionPolicyAdopt},
		"a certificate with its key": {chart{"templates/db.yaml": "{{ $c := genSelfSignedCert \"a\" nil nil 90 }}\n" +
			secretTemplate("db", "data:\n  crt: {{ $c.Cert | b64enc }}\n  key: {{ $c.Key | b64enc }}\n")}, addonsv1.AdoptionPolicyAdopt},
		"a hash and annotations": {chart{"templates/db.yaml": secretTemplate("db", "stringData:\n  login: {{ htpasswd \"me\" (randAlphaNum 16) | quote }}\n"),
			"templates/sum.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sum, annotations: {sum: {{ randAlphaNum 16 | sha256sum }}}}\n"}, addonsv1.AdoptionPolicyAdopt},
	} {
		t.Run(name, func(t *testing.T) {
			tn := newTenant(t)
			s.createNamespace(t, tn.namespace)
			tn.helmInstalls(s, "db", c.chart)
			before := tn.secretOn(s, "db").Data
			tn.makeCluster("prod", s, labels("env=prod"))
			tn.startManager()
			path := tn.writeChart("db", "1.0.0", c.chart)
			tn.install(tn.addon("db", path, func(a *addonsv1.Addon) { a.AdoptionPolicy = c.policy }))
			tn.Expect(tn.secretOn(s, "db").Data).To(Equal(before))
		})
	}
}

func (tn *tenant) secretOn(s *server, name string) *corev1.Secret {
	tn.t.Helper()
	secret := &corev1.Secret{}
	tn.Expect(s.Get(tn.t.Context(), tn.key(name), secret)).To(Succeed())
	return secret
}

// TestHelmReleaseWithAHashIsLeftAlone has a chart whose generated value is nowhere to be read: to take
// it over would change it. The user gives it a value.
func TestHelmReleaseWithAHashIsLeftAlone(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	s.createNamespace(t, tn.namespace)
	c := chart{
		"values.yaml":       "password: ''\n",
		"templates/db.yaml": secretTemplate("db", "stringData:\n  sum: {{ .Values.password | default (randAlphaNum 16) | sha256sum }}\n"),
	}
	tn.helmInstalls(s, "db", c)
	before := tn.secretOn(s, "db")
	path := tn.writeChart("db", "1.0.0", c)
	adopt := func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt }
	stack := tn.makeStack("platform", nil, tn.addon("db", path, adopt))
	tn.awaitCluster("prod", "it says what would change", phase("db", addonsv1.AddonFailed, "GeneratedValuesLost", "Secret db: data.sum"))
	tn.Expect(tn.secretOn(s, "db").ResourceVersion).To(Equal(before.ResourceVersion))
	change(tn, stack, func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0] = tn.addon("db", path, adopt, withValues(map[string]any{"password": "mine"}))
	})
	tn.awaitReady("platform", "with a value of the user's own it is taken over")
}

// TestLookupFindsTheAddonsOwnObjectsAlone changes what a chart generated, and upgrades.
func TestLookupFindsTheAddonsOwnObjectsAlone(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	s.createNamespace(t, tn.namespace)
	tn.Expect(s.Create(t.Context(), &corev1.Secret{ObjectMeta: tn.named("foreign"), Data: map[string][]byte{"a": []byte("b")}})).To(Succeed())
	path := tn.writeChart("db", "1.0.0", keepsByLookup)
	left := func(a *addonsv1.Addon) { a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport} } // else it is set back at once
	stack := tn.makeStack("platform", nil, tn.addon("db", path, left))
	tn.awaitReady("platform", "installed")
	found := func() string {
		cm := &corev1.ConfigMap{}
		tn.Expect(s.Get(t.Context(), tn.key("found"), cm)).To(Succeed())
		return cm.Data["text"]
	}
	tn.Expect(found()).To(Equal("of 0"))
	secret := tn.secretOn(s, "db")
	secret.Data["password"] = []byte("rotated by hand")
	tn.Expect(s.Update(t.Context(), secret, client.FieldOwner("somebody"))).To(Succeed())
	change(tn, stack, func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0] = tn.addon("db", path, left, withValues(map[string]any{"text": "new"}))
	})
	tn.awaitReady("platform", "upgraded")
	tn.Expect(tn.secretOn(s, "db").Data).To(And(HaveKeyWithValue("text", []byte("new")), HaveKeyWithValue("password", []byte("rotated by hand"))))
	tn.Expect(strings.TrimSpace(found())).To(Equal("db of 0"))
}
