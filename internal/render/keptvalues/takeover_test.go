// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// takenOver renders a chart whose release has objects, as a worker does.
func takenOver(t *testing.T, templates map[string]string, live []*unstructured.Unstructured) (*job.Result, error) {
	t.Helper()
	req := rendering.ChartJob(rendering.ChartOf(templates))
	req.LiveObjects = live
	return rendering.Render(t, req)
}

// asLive is how a cluster serves a Secret: without stringData.
func asLive(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	plain, _, err := unstructured.NestedStringMap(o.Object, "stringData")
	must.Succeed(t, err)
	return asServed(o.GetName(), plain)
}

func TestValuesThatLiveObjectsDisagreeAboutAreNotTakenOver(t *testing.T) {
	templates := map[string]string{"templates/a.yaml": "{{ $p := randAlphaNum 12 }}" + secret("a", "  p: {{ $p }}\n") + secret("b", "  p: {{ $p }}\n")}
	helms := rendering.MustRender(t, rendering.ChartJob(rendering.ChartOf(templates)))
	a, b := asLive(t, helms.Objects[0]), asLive(t, helms.Objects[1])
	result, err := takenOver(t, templates, []*unstructured.Unstructured{a, b})
	if err != nil || result.Made || result.Manifest != helms.Manifest {
		t.Fatalf("it differs, %v", err)
	}
	b = asServed("b", map[string]string{"p": "rotated by hand"})
	_, err = takenOver(t, templates, []*unstructured.Unstructured{a, b})
	rendering.WantReason(t, err, job.ReasonGeneratedValuesLost, "Secret a: data.p", "Secret b: data.p")
}

// TestLostValuesAreRenewed has what can't be taken over made again, and nothing else.
func TestLostValuesAreRenewed(t *testing.T) {
	templates := map[string]string{"templates/a.yaml": secret("a", "  hash: {{ randAlphaNum 12 | sha256sum }}\n  kept: {{ randAlphaNum 16 }}\n")}
	helms := rendering.MustRender(t, rendering.ChartJob(rendering.ChartOf(templates)))
	live := []*unstructured.Unstructured{asLive(t, helms.Objects[0])}
	_, err := takenOver(t, templates, live)
	rendering.WantReason(t, err, job.ReasonGeneratedValuesLost, "Secret a: data.hash", "generatedValuesPolicy: Renew")
	req := rendering.ChartJob(rendering.ChartOf(templates))
	req.LiveObjects, req.RenewLost = live, true
	got := rendering.MustRender(t, req)
	was, is := live[0].Object["data"].(map[string]any), asLive(t, got.Objects[0]).Object["data"].(map[string]any)
	if was["kept"] != is["kept"] || was["hash"] == is["hash"] {
		t.Error("the password is to stay, and the hash to change")
	}
}

// oldCertificate is at eight ninths of its life.
func oldCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().AddDate(0, 0, -80), NotAfter: time.Now().AddDate(0, 0, 10)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must.Succeed(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	must.Succeed(t, err)
	text := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", keyDER)
}

func TestCertificateThatIsDueIsTakenOverFirst(t *testing.T) {
	templates := map[string]string{"templates/a.yaml": `{{ $c := genSelfSignedCert "a" nil nil 90 }}` + secret("a", "  c: {{ $c.Cert | quote }}\n  k: {{ $c.Key | quote }}\n")}
	cert, key := oldCertificate(t)
	result, err := takenOver(t, templates, []*unstructured.Unstructured{asServed("a", map[string]string{"c": cert, "k": key})})
	must.Succeed(t, err)
	must.Equal(t, cert, stringData(result, "a", "c"))
	if at := keptvalues.RenewAt(result.Generated); at.IsZero() || at.After(time.Now()) {
		t.Errorf("it is renewed at %s", at)
	}
	renewed := inWorker(t, templates, nil, result.Generated)
	if stringData(renewed, "a", "c") == cert {
		t.Error("the next rendering doesn't renew it")
	}
}
