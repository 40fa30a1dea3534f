// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// helmTemplate renders as `helm template` does, with Helm's own install action.
func helmTemplate(t *testing.T, files []byte, values map[string]any) *helmrelease.Release {
	t.Helper()
	return helmTemplateFor(t, files, values, rendering.Facts)
}

func helmTemplateFor(t *testing.T, files []byte, values map[string]any, facts job.Facts) *helmrelease.Release {
	t.Helper()
	rel, err := helmtemplate.Of(files, values, facts.KubeVersion, facts.APIVersions...)
	must.Succeed(t, err)
	return rel
}

// helmFacts are what `helm template --api-versions` makes of facts.
func helmFacts() job.Facts {
	return job.Facts{KubeVersion: rendering.Facts.KubeVersion, APIVersions: append(append([]string{}, common.DefaultVersionSet...), rendering.Facts.APIVersions...)}
}

func TestRealChartsAsHelm(t *testing.T) {
	cases := map[string]struct {
		archive string
		values  map[string]any
		objects int
		crds    int
		hooks   int
	}{
		"metrics-server":     {archive: "metrics-server-3.13.1.tgz", objects: 9},
		"kube-state-metrics": {archive: "kube-state-metrics-8.4.0.tgz", objects: 5},
		"ingress-nginx": {archive: "ingress-nginx-4.15.1.tgz", objects: 12, hooks: 7,
			values: map[string]any{"controller": map[string]any{"replicaCount": float64(3)}}},
		"Cilium 1.19.5, certificates by cert-manager": {archive: "cilium-1.19.5.tgz", objects: 24, values: withoutCertificates},
		"Cilium 1.19.6, certificates by cert-manager": {archive: "cilium-1.19.6.tgz", objects: 24, values: withoutCertificates},
		"Cilium 1.20.0, certificates by cert-manager": {archive: "cilium-1.20.0.tgz", objects: 24, values: withoutCertificates},
	}
	r := rendering.NewRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := rendering.ChartJob(rendering.RealChart(t, c.archive))
			req.Values, req.Facts = c.values, helmFacts()
			got := rendering.MustChart(t, r, req)
			want := helmTemplate(t, realdata.Read(t, "charts", c.archive), c.values)
			must.Equal(t, want.Manifest, got.Manifest, "manifest differs from Helm's")
			if len(got.Objects) != c.objects {
				t.Errorf("got %d objects, want %d", len(got.Objects), c.objects)
			}
			compareHooks(t, want.Hooks, got.Hooks, c.hooks)
			compareDefaults(t, want, got)
			must.Equal(t, want.Chart.Metadata.Version, got.Version, "version")
			req.Generated = got.Generated
			again := rendering.MustChart(t, r, req)
			must.Equal(t, got, again, "a second rendering differs")
		})
	}
}

// compareDefaults compares the values of the chart with those that Helm records, which `helm upgrade --reuse-values` begins with.
func compareDefaults(t *testing.T, want *helmrelease.Release, got *job.Result) {
	t.Helper()
	recorded, err := json.Marshal(&chart.Chart{Metadata: want.Chart.Metadata, Values: want.Chart.Values})
	must.Succeed(t, err)
	must.Equal(t, string(recorded), string(got.Chart), "metadata and values of the chart differ from those in Helm's record")
}

func compareHooks(t *testing.T, want []*helmrelease.Hook, got []job.Hook, count int) {
	t.Helper()
	if len(got) != count {
		t.Errorf("got %d hooks, want %d", len(got), count)
	}
	texts := map[string]int{}
	for _, h := range want {
		if h.Events[0] != helmrelease.HookTest {
			texts[h.Manifest] = h.Weight
		}
	}
	for i, h := range got {
		weight, ok := texts[h.Manifest]
		if !ok || weight != h.Weight {
			t.Errorf("hook %s %s is not as Helm's", h.Kind, h.Name)
		}
		if i > 0 && h.Weight < got[i-1].Weight {
			t.Errorf("hook %s comes after one of greater weight", h.Name)
		}
	}
	if len(texts) != len(got) {
		t.Errorf("got %d hooks, Helm has %d", len(got), len(texts))
	}
}

var withoutCertificates = map[string]any{
	"hubble": map[string]any{"tls": map[string]any{"auto": map[string]any{
		"method":               "certmanager",
		"certManagerIssuerRef": map[string]any{"name": "ca", "kind": "ClusterIssuer", "group": "cert-manager.io"},
	}}},
}

// ciliumSecret returns the data of one of Cilium's Secrets, decoded.
func ciliumSecret(t *testing.T, result *job.Result, name string) map[string]string {
	t.Helper()
	for _, object := range result.Objects {
		if object.GetKind() != "Secret" || object.GetName() != name {
			continue
		}
		data, _, err := unstructured.NestedStringMap(object.Object, "data")
		must.Succeed(t, err)
		for key, value := range data {
			plain, err := base64.StdEncoding.DecodeString(value)
			must.Succeed(t, err)
			data[key] = string(plain)
		}
		return data
	}
	t.Fatalf("no Secret %s", name)
	return nil
}

func TestCiliumCertificatesStay(t *testing.T) {
	long.InCI(t)
	r := rendering.NewRenderer(t)
	render := func(archive string, values map[string]any, generated job.Generated) *job.Result {
		t.Helper()
		req := rendering.ChartJob(rendering.RealChart(t, archive))
		req.Values, req.Generated = values, generated
		result := rendering.MustChart(t, r, req)
		return result
	}
	first := render("cilium-1.19.5.tgz", nil, nil)
	if len(first.Generated) < 2 {
		t.Fatalf("generated %d values, want a CA and a certificate at least", len(first.Generated))
	}
	t.Logf("%d objects, %d generated values", len(first.Objects), len(first.Generated))

	t.Run("without a memory all is new", func(t *testing.T) {
		if other := render("cilium-1.19.5.tgz", nil, nil); other.Manifest == first.Manifest {
			t.Error("two renderings without Generated are equal")
		}
	})
	t.Run("with the memory nothing changes", func(t *testing.T) {
		second := render("cilium-1.19.5.tgz", nil, first.Generated)
		if !first.Made || second.Made {
			t.Errorf("the first made values: %t, the second did: %t", first.Made, second.Made)
		}
		second.Made = first.Made
		must.Equal(t, first, second, "the second rendering differs")
	})
	t.Run("another value changes no certificate", func(t *testing.T) {
		changed := render("cilium-1.19.5.tgz", map[string]any{"debug": map[string]any{"enabled": true}}, first.Generated)
		if changed.Manifest == first.Manifest {
			t.Error("the value had no effect")
		}
		must.Equal(t, first.Generated, changed.Generated, "certificates changed")
	})
	t.Run("another patch version changes no certificate", func(t *testing.T) {
		upgraded := render("cilium-1.19.6.tgz", nil, first.Generated)
		must.Equal(t, first.Generated, upgraded.Generated, "certificates changed")
	})
	t.Run("another DNS name means a new certificate of the same CA", func(t *testing.T) {
		values := map[string]any{"hubble": map[string]any{"tls": map[string]any{"server": map[string]any{"extraDnsNames": []any{"a.example"}}}}}
		changed := render("cilium-1.19.5.tgz", values, first.Generated)
		before, after := ciliumSecret(t, first, "hubble-server-certs"), ciliumSecret(t, changed, "hubble-server-certs")
		if before["tls.crt"] == after["tls.crt"] {
			t.Error("the certificate is the same")
		}
		if before["ca.crt"] != after["ca.crt"] {
			t.Error("the CA changed")
		}
		verify(t, after["ca.crt"], after["tls.crt"], "a.example")
		again := render("cilium-1.19.5.tgz", values, changed.Generated)
		if again.Manifest != changed.Manifest {
			t.Error("the new certificate does not stay")
		}
	})
	t.Run("switched off and on again, it is as before", func(t *testing.T) {
		off := render("cilium-1.19.5.tgz", map[string]any{"hubble": map[string]any{"enabled": false}}, first.Generated)
		if on := render("cilium-1.19.5.tgz", nil, off.Generated); on.Manifest != first.Manifest {
			t.Errorf("it differs:\n%.3000s", cmp.Diff(first.Manifest, on.Manifest))
		}
	})
	t.Run("the time of renewal is known", func(t *testing.T) {
		at := keptvalues.RenewAt(first.Generated)
		if at.Before(time.Now().AddDate(0, 1, 0)) || at.After(time.Now().AddDate(3, 0, 0)) {
			t.Errorf("renewal at %s", at)
		}
	})
}

func verify(t *testing.T, ca, cert, name string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca))
	block, _ := pem.Decode([]byte(cert))
	parsed, err := x509.ParseCertificate(block.Bytes)
	must.Succeed(t, err)
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
		t.Errorf("certificate: %v", err)
	}
}

func TestFactsThatRealChartsAsk(t *testing.T) {
	r := rendering.NewRenderer(t)
	result := rendering.MustChart(t, r, rendering.ChartJob(rendering.RealChart(t, "ingress-nginx-4.15.1.tgz")))
	used := result.FactsUsed
	t.Logf("%+v", used)
	if used.KubeRange[">=1.21.0-0"] != true {
		t.Errorf("the constraint of Chart.yaml was not asked: %v", used)
	}
	newer := job.Facts{KubeVersion: "v1.37.0", APIVersions: rendering.Facts.APIVersions}
	if !used.Holds(rendering.Facts) || used.Holds(newer) != (used.KubeVersion == "") {
		t.Errorf("%+v holds wrongly", used)
	}
}
