// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
	"github.com/cluster-chandler/chandler/test/wait"
)

func TestWhoseObjectsWakeAStack(t *testing.T) {
	verify := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	oci := func(secret string) *addonsv1.OCISource {
		return &addonsv1.OCISource{URL: "oci://example.org/web", SecretRef: &addonsv1.CredentialsReference{Name: secret}}
	}
	s := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{
		Source: &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Verify: verify, Version: "docker-scs-1-31-v1", OCI: oci("of-bundle")}},
		Addons: []addonsv1.Addon{
			{Name: "a", Chart: addonsv1.ChartSource{Version: "1.x", OCI: oci("of-range"), Verify: &addonsv1.Verification{
				Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "Secret", Name: "keyring"}},
			}}},
			{Name: "b", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: oci("of-version")}},
			{Name: "c", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.x", OCI: oci("of-files")}}},
		},
	}}
	for object, want := range map[[2]string]bool{
		{"Secret", "of-bundle"}: true, {"ConfigMap", "keys"}: true, {"Secret", "of-range"}: true, {"Secret", "keyring"}: true, {"Secret", "of-files"}: true,
		{"Secret", "of-version"}: true, {"Secret", "keys"}: false, {"ConfigMap", "of-bundle"}: false, {"ConfigMap", "other"}: false,
	} {
		if got := uses(s, object[0], object[1]); got != want {
			t.Errorf("%s: %v, want %v", object, got, want)
		}
	}
}

// Somebody who has published something else in the place of what was rejected needn't wait: look-now has the source asked at
// once. Nobody asks it before.
func TestLookNowAsksForWhatWasRejected(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.PushArchive(t, []byte("no archive"), "web", "1.0.0")
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	r, s, _ := keeping(t)
	r.statuses.Client = r.Client
	var err error
	if r.Sources, err = source.New(source.Options{Opener: renderer, AllowLoopback: true}); err != nil {
		t.Fatal(err)
	}
	look := func(change func()) {
		read(t, r.Client, s)
		change()
		must.Succeed(t, r.Client.Update(t.Context(), s))
		_, _ = r.Reconcile(t.Context(), mcreconcile.Request{Request: requestOf(s)}) // this client has no statuses to write
	}
	look(func() {
		s.Spec.Addons[0].Chart = addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: server.URL("web"), PlainHTTP: ptr.To(true)}}
	})
	fetch := func() error {
		ref := sourcesIn(s)["web"]
		digest, err := r.Sources.Resolve(t.Context(), ref)
		if err == nil {
			_, err = r.Sources.Fetch(t.Context(), ref, digest)
		}
		return err
	}
	isInvalid := func(err error) bool {
		failed, ok := errors.AsType[*failure.Error](err)
		return ok && failed.Reason != failure.ArtifactPending
	}
	wait.Until(t, time.Minute, "it is rejected", func() error {
		if err := fetch(); !isInvalid(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	server.Push(t, targz.Of(t, targz.Entry{Name: "web/Chart.yaml", Data: "apiVersion: v2\nname: web\nversion: 1.0.0\n"}), "web", "1.0.0")
	if err := fetch(); !isInvalid(err) {
		t.Errorf("before its time: %v", err)
	}
	look(func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, addonsv1.LookNowAnnotation, "now") })
	wait.Until(t, time.Minute, "it is fetched", fetch)
}

// A stack whose spec is kept says how its sources are.
func TestKeptSpecTellsOfItsSources(t *testing.T) {
	r, s, _ := keeping(t)
	var err error
	if r.Sources, err = source.New(source.Options{}); err != nil {
		t.Fatal(err)
	}
	read(t, r.Client, s)
	if _, err := r.inspect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !conditions.Has(s, addonsv1.SourcesReadyCondition) {
		t.Errorf("conditions: %+v", s.Status.Conditions)
	}
}

func requestOf(o client.Object) (r reconcile.Request) {
	r.NamespacedName = client.ObjectKeyFromObject(o)
	return r
}
