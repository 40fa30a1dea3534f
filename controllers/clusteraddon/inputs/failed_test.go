// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
	"github.com/cluster-chandler/chandler/test/must"
)

// The failures of several add-ons stand side by side in the stack's conditions: each one
// names its add-on, whether the digest couldn't be had or the archive.
func TestFailuresOfSourcesNameTheAddon(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("\x1f\x8bno archive"))
	}))
	t.Cleanup(server.Close)
	sources, err := source.New(source.Options{AllowLoopback: true})
	must.Succeed(t, err)
	at := &addonsv1.HTTPSource{URL: server.URL + "/web.tgz", Digest: "sha256:" + strings.Repeat("a", 64), PlainHTTP: ptr.To(true)}
	a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Chart: addonsv1.ChartSource{HTTP: at}}}
	in := &inputs.Inputs{Addon: a, Chart: a.Reference("team"), Artifact: at.Digest}
	_, err = rendering.Renderer{Sources: sources}.Render(t.Context(), in, deliver.RenderInput{})
	failed, ok := err.(*failure.Error) //nolint:errorlint // as the deliverer words it
	if want := "addons[web].chart.http: " + server.URL + "/web.tgz@"; !ok || failed.Reason != failure.DigestMismatch || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of the archive: %v, want it to begin with %s", err, want)
	}
	if !strings.HasSuffix(err.Error(), "correct http.digest or url") {
		t.Errorf("%v names no way out", err)
	}

	lost := &wanted.Addon{Addon: addonsv1.Addon{Name: "dns", Chart: addonsv1.ChartSource{Path: "dns.tgz"}}}
	_, err = sources.Resolve(t.Context(), lost.Reference("team"))
	if is, ok := errors.AsType[*failure.Error](inputs.OfAddon(lost, err)); !ok || is.Reason != failure.SourceDisabled || !strings.HasPrefix(is.Error(), `addons[dns].chart.path: "dns.tgz" of the artifact root: `) {
		t.Errorf("of the digest: %v", err)
	}
}

// What is wrong with the content is said in other words for each kind of it, and with the
// field in front.
func TestFailuresOfContentNameTheField(t *testing.T) {
	chart := &wanted.Addon{Addon: addonsv1.Addon{Name: "web"}}
	kustomization := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Kustomization: &addonsv1.KustomizationSource{}}}
	manifests := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Manifests: &addonsv1.ManifestsSource{}}}
	for _, tc := range []struct {
		a                  *wanted.Addon
		reason, said, want string
	}{
		{chart, job.ReasonSchemaViolation, "values.replicas: got string, want integer", "addons[web].values.replicas: got string, want integer"},
		{chart, job.ReasonSchemaViolation, "values: missing property 'a'", "addons[web].values: missing property 'a'"},
		{chart, job.ReasonTemplateFailed, "templates/a.yaml:1: no", "addons[web].chart: templates/a.yaml:1: no"},
		{chart, job.ReasonPatchFailed, "patches[0]: none", "addons[web].patches[0]: none"},
		{chart, job.ReasonPatchFailed, "templates/a.yaml: no", "addons[web].patches: templates/a.yaml: no"},
		{kustomization, job.ReasonKustomizationInvalid, "kustomization.yaml: it is empty", "addons[web].kustomization: kustomization.yaml: it is empty"},
		{kustomization, job.ReasonPatchFailed, "patches[0] leaves no object", "addons[web].patches[0] leaves no object"},
		{manifests, job.ReasonManifestInvalid, "a.yaml: no", "addons[web].manifests: a.yaml: no"},
	} {
		err := &failure.Error{Reason: tc.reason, Err: errors.New(tc.said)}
		if is, ok := errors.AsType[*failure.Error](inputs.OfAddon(tc.a, err)); !ok || is.Reason != tc.reason || is.Error() != tc.want {
			t.Errorf("got %v, want %s", is, tc.want)
		}
	}
}

// What waits for a renderer says so, and in which time it is tried again. It names nothing to correct.
func TestWaitsForARenderer(t *testing.T) {
	renderer := render.New(render.Options{})
	t.Cleanup(renderer.Close)
	impatient := render.WithPatience(t.Context(), 0)
	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "v"}, Data: map[string]string{"values.yaml": "a: 1"}}
	reader := fake.NewClientBuilder().WithObjects(there).Build()
	q := layers.Reader{Renderer: renderer, Sources: valuesource.NewReader(reader, reader, nil), Namespace: "team", Cluster: &member.Member{}}
	a := &addonsv1.Addon{Name: "web", ValuesTemplate: "a: 1"}
	for _, layer := range layers.Of(a, []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: "v"}}) {
		_, _, err := q.Read(impatient, layer)
		is, ok := errors.AsType[*failure.Error](err)
		if !ok || is.Reason != job.ReasonWaitingForRenderer || is.RetryAfter <= 0 || strings.Contains(is.Error(), "correct") || reasons.Of(is.Reason).Phase() != addonsv1.AddonPending {
			t.Errorf("of %s: %+v", layer.Field, err)
		}
	}
}
