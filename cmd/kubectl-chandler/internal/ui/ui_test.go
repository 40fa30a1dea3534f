// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/ui"
	"github.com/cluster-chandler/chandler/test/must"
)

const hostile = "<script>alert(1)</script>\u202ereversed\x1b[2J' onload=x \"><img src=x>"

// serve returns the page of a fleet with so many clusters, each with so many add-ons.
func serve(t testing.TB, clusters, addons int) http.Handler {
	t.Helper()
	return pageOf(t, interceptor.Funcs{}, fleetOf(t, clusters, addons)...)
}

// pageOf returns the page of a management cluster with objects, which answers as the functions say.
func pageOf(t testing.TB, answers interceptor.Funcs, objects ...client.Object) http.Handler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, clusterv1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(answers).
		WithIndex(&eventsv1.Event{}, "regarding.apiVersion", func(client.Object) []string { return nil }).Build()
	page := ui.New(c, c, "team")
	must.Succeed(t, page.Read(t.Context()))
	return page.Handler()
}

// fleetOf returns the objects of a fleet. The first cluster fails with hostile words.
func fleetOf(t testing.TB, clusters, addons int) []client.Object {
	t.Helper()
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
	s.Status.Rollout = &addonsv1.RolloutStatus{Phase: addonsv1.RolloutSoaking}
	s.Status.History = []addonsv1.StackChange{{Time: metav1.Now(), Cause: addonsv1.ChangeEdited, By: hostile, To: "platform-1", Versions: "addon-00 0.9.0 -> 1.0.0"}}
	s.UID, s.Spec.Addons = "1", []addonsv1.Addon{{Name: "addon-00", DependsOn: []string{"addon-01"}}}
	s.Status.Sources = []addonsv1.StackSource{{Addon: "addon-00", Address: hostile, Conditions: []metav1.Condition{{Reason: "ArtifactNotFound", Message: hostile}}}}
	spec, err := json.Marshal(s.Spec)
	must.Succeed(t, err)
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform-1", Labels: map[string]string{addonsv1.StackNameLabel: "platform"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, addonsv1.GroupVersion.WithKind("AddonStack"))}}, Revision: 1, Data: runtime.RawExtension{Raw: spec}}
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	s.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Message: hostile}}
	objects := []client.Object{s, revision, &addonsv1.ProviderInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"}}}
	for i := range clusters {
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("prod-%04d", i)}}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", HeldRemoval: &addonsv1.HeldRemoval{Confirmation: "x", Addons: []string{hostile}}}}
		for k := range addons {
			ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: fmt.Sprintf("addon-%02d", k), Namespace: "apps", Stack: "platform", Phase: addonsv1.AddonReady, Version: "1.0.0"})
		}
		for ago, cause := range []addonsv1.ChangeCause{addonsv1.ChangeEdited, addonsv1.ChangeInstalled} {
			ca.Status.History = append(ca.Status.History, addonsv1.AddonChange{Time: metav1.NewTime(time.Now().Add(-time.Duration(ago) * 24 * time.Hour)),
				Stack: "platform", Addon: "addon-00", Cause: cause, From: []string{"0.9.0", ""}[ago], To: []string{"1.0.0", "0.9.0"}[ago]})
		}
		if i == 0 && addons > 0 {
			a := &ca.Status.Addons[0]
			a.Phase, a.Reason, a.Message, a.Version = addonsv1.AddonFailed, "HookFailed", hostile, hostile
		}
		objects = append(objects, ca)
	}
	return objects
}

func get(h http.Handler, path string, header map[string]string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path, nil), httptest.NewRecorder()
	for name, value := range header {
		r.Header.Set(name, value)
	}
	h.ServeHTTP(w, r)
	return w
}

var paths = []string{"/", "/?open=team", "/?label=region", "/causes", "/changes", "/changes?since=12h", "/events", "/held", "/instances", "/cluster/team/prod-0000", "/stack/team/platform"}

// isHarmless checks that a page is whole, and nothing of hostile words is a part of it.
func isHarmless(t *testing.T, path, body string) {
	t.Helper()
	if !strings.Contains(body, "</html>") || strings.Contains(body, "<script>") || strings.Contains(body, "<img") || strings.ContainsAny(body, "\u202e\x1b") {
		t.Errorf("%s: %s", path, body)
	}
}

// Nothing that a chart or a cluster says becomes a part of the page, on any view.
func TestHostileWords(t *testing.T) {
	h := serve(t, 3, 2)
	told := 0
	for _, path := range paths {
		w := get(h, path, nil)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(body, "kubectl chandler ") {
			t.Errorf("%s: %d: %s", path, w.Code, body)
		}
		isHarmless(t, path, body)
		told += strings.Count(body, "alert(1)")
	}
	if told < 5 {
		t.Errorf("the words are told %d times", told)
	}
}

// The page is for a browser on this machine, and for no other page in it.
func TestOnlyForThisMachine(t *testing.T) {
	h := serve(t, 1, 1)
	for name, tc := range map[string]struct {
		method, host string
		header       map[string]string
		want         int
	}{
		"itself":             {"GET", "localhost:8080", nil, 200},
		"by address":         {"GET", "127.0.0.1:8080", nil, 200},
		"by address 6":       {"GET", "[::1]:8080", nil, 200},
		"its script":         {"GET", "localhost:8080", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8080"}, 200},
		"a link":             {"GET", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		"a frame":            {"GET", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		"another page":       {"GET", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"another port":       {"GET", "localhost:8080", map[string]string{"Origin": "http://localhost:9090"}, 403},
		"a name of others":   {"GET", "evil.example.org:8080", nil, 403},
		"without port":       {"GET", "localhost", nil, 403},
		"begins as this one": {"GET", "localhost.example.org:8080", nil, 403},
		"a write":            {"POST", "localhost:8080", nil, 405},
	} {
		r, w := httptest.NewRequest(tc.method, "http://localhost:8080/", nil), httptest.NewRecorder()
		r.Host = tc.host
		for key, value := range tc.header {
			r.Header.Set(key, value)
		}
		h.ServeHTTP(w, r)
		if w.Code != tc.want || w.Header().Get("X-Frame-Options") != "DENY" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
	}
}

func TestStackView(t *testing.T) {
	body := get(serve(t, 2, 2), "/stack/team/platform", nil).Body.String()
	for _, part := range []string{"1 platform-1", "ArtifactNotFound", "needs addon-01", "Rollout: Soaking", "kubectl chandler why stack/platform -n team"} {
		if !strings.Contains(body, part) {
			t.Errorf("%s isn't in %s", part, body)
		}
	}
}

// What changed is told of a stack, of a cluster, and of all of them, the newest first and as the command history tells it.
func TestHistories(t *testing.T) {
	h := serve(t, 2, 1)
	const edited, upgraded, installed = "platform: Edited by", "platform/addon-00 0.9.0 -&gt; 1.0.0: Edited", "platform/addon-00 0.9.0: Installed"
	for path, tc := range map[string]struct {
		command   string
		has, none []string
	}{
		"/stack/team/platform":    {"kubectl chandler history stack/platform -n team", []string{edited}, []string{upgraded}},
		"/cluster/team/prod-0001": {"kubectl chandler history cluster/prod-0001 -n team", []string{upgraded, installed}, []string{edited, "2 clusters: prod-0000"}},
		"/changes":                {"kubectl chandler history -n team", []string{edited, upgraded, "2 clusters: prod-0000, prod-0001", installed}, nil},
		"/changes?since=12h":      {"kubectl chandler history --since 12h0m0s -n team", []string{edited, upgraded}, []string{installed}},
	} {
		body := get(h, path, nil).Body.String()
		rest, found := body, false
		for _, part := range append([]string{tc.command}, tc.has...) {
			if _, rest, found = strings.Cut(rest, part); !found {
				t.Errorf("%s: %s isn't there, or not in this order: %s", path, part, body)
			}
		}
		for _, part := range tc.none {
			if strings.Contains(body, part) {
				t.Errorf("%s: %s is there", path, part)
			}
		}
	}
	if w := get(h, "/changes?since=ever", nil); w.Code == http.StatusOK {
		t.Errorf("since ever: %d", w.Code)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	h := serve(t, 1, 1)
	for _, path := range []string{"/cluster/team/none", "/values/team/none/apps/addon-00", "/values/team/prod-0000/apps/none", "/values/team/prod-0000/other/addon-00", "/stack/team/none", "/stack/other/platform", "/nothing"} {
		if w := get(h, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Clusters that are well are counted, and are rows once they are asked for.
func TestFoldedRows(t *testing.T) {
	h := serve(t, 5, 2)
	folded, open := get(h, "/", nil).Body.String(), get(h, "/?open=team", nil).Body.String()
	if !strings.Contains(folded, "prod-0000") || strings.Contains(folded, "prod-0001") || !strings.Contains(folded, "Show 4 clusters") {
		t.Error(folded)
	}
	if !strings.Contains(open, "prod-0001") || !strings.Contains(open, "prod-0004") {
		t.Error(open)
	}
}

// BenchmarkFleet shows 1,000 clusters with 30 add-ons each, all of them unfolded.
func BenchmarkFleet(b *testing.B) {
	h := serve(b, 1000, 30)
	for b.Loop() {
		if w := get(h, "/?open=team", nil); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
