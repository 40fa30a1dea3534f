// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
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
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource"
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
	q := &clusterRun{
		proofs:     &releases.Proofs{},
		memory:     newMemory(),
		Reconciler: &Reconciler{Sources: sources, watched: fleetwatch.NewObjects(nil)},
		ca:         &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}},
	}

	in := &inputs.Inputs{Addon: a, Chart: a.Reference(q.ca.Namespace), Artifact: at.Digest}
	_, err = delivery{q}.desired(in).Render(context.Background(), deliver.RenderInput{})
	failed, ok := err.(*failure.Error) //nolint:errorlint // as the deliverer words it
	if want := "addons[web].chart.http: " + server.URL + "/web.tgz@"; !ok || failed.Reason != failure.DigestMismatch || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of the archive: %v, want it to begin with %s", err, want)
	}
	if !strings.HasSuffix(err.Error(), "correct http.digest or url") {
		t.Errorf("%v names no way out", err)
	}

	lost := &wanted.Addon{Addon: addonsv1.Addon{Name: "dns", Chart: addonsv1.ChartSource{Path: "dns.tgz"}}}
	_, err = sources.Resolve(context.Background(), lost.Reference(q.ca.Namespace))
	if reason, message := saidOf(q, err, lost); reason != failure.SourceDisabled || !strings.HasPrefix(message, `addons[dns].chart.path: "dns.tgz" of the artifact root: `) {
		t.Errorf("of the digest: %s: %s", reason, message)
	}
}

// saidOf returns what the status of an add-on says of an error.
func saidOf(q *clusterRun, err error, a *wanted.Addon) (reason, message string) {
	one := delivery{q}.inputFailed(&turn{addon: a, err: inputs.OfAddon(a, err), status: a.Status()})
	return one.status.Reason, one.status.Message
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
		if reason, message := saidOf(&clusterRun{proofs: &releases.Proofs{}, memory: newMemory()}, err, tc.a); reason != tc.reason || message != tc.want {
			t.Errorf("got %s: %s, want %s", reason, message, tc.want)
		}
	}
}

// An add-on that waits for a renderer says so. What is installed stays as it was found until there is time to look.
func TestWaitsForARenderer(t *testing.T) {
	renderer := render.New(render.Options{})
	t.Cleanup(renderer.Close)
	impatient := render.WithPatience(t.Context(), 0)
	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "v"}, Data: map[string]string{"values.yaml": "a: 1"}}
	reader := fake.NewClientBuilder().WithObjects(there).Build()
	q := &clusterRun{
		proofs:     &releases.Proofs{},
		Reconciler: &Reconciler{Renderer: renderer, Values: valuesource.NewReader(reader, reader, nil)},
		ca:         &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}, cluster: &member.Member{},
	}
	a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", ValuesTemplate: "a: 1"}, Stack: "platform"}
	_, _, ofSource := q.reader().ValuesFrom(impatient, addonsv1.ValuesReference{Kind: "ConfigMap", Name: "v"})
	_, ofTemplate := q.reader().ValuesTemplate(impatient, a)
	deployed := deliver.Summary{Status: deliver.StatusDeployed, Terms: deliver.Terms{Spec: a.SpecDigest()}}
	for name, err := range map[string]error{"values": ofSource, "a template": ofTemplate} {
		for _, tc := range []struct {
			was    addonsv1.AddonPhase
			record deliver.Summary
			keeps  bool
		}{
			{"", deliver.Summary{}, false},
			{addonsv1.AddonPending, deliver.Summary{}, false},
			{addonsv1.AddonPending, deployed, false},
			{addonsv1.AddonReady, deployed, true},
			{addonsv1.AddonDegraded, deployed, true},
			{addonsv1.AddonReady, deliver.Summary{Status: deliver.StatusDeployed}, false}, // by another spec
			{addonsv1.AddonFailed, deliver.Summary{}, true},
		} {
			was := a.Status()
			was.Phase, was.Reason = tc.was, "Before"
			q.ca.Status.Addons = []addonsv1.AddonStatus{was}
			q.ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "1"}}
			q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "1"}}
			of := &turn{addon: a, err: err, status: a.Status(), record: tc.record}
			one := delivery{q}.inputFailed(of)
			one.say(delivery{q}.cameOf(t.Context(), of, decide.ReportUnreadable, one.status).Say())
			phase, reason := addonsv1.AddonPending, job.ReasonWaitingForRenderer
			if tc.keeps {
				phase, reason = tc.was, "Before"
			}
			if one.status.Phase != phase || one.status.Reason != reason || one.retryAfter <= 0 || one.err != nil {
				t.Errorf("of %s, %s before: %+v", name, tc.was, one)
			}
			if strings.Contains(one.status.Message, "correct") {
				t.Errorf("of %s: %s", name, one.status.Message)
			}
		}
	}
}
