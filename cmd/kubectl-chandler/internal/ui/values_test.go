// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/test/must"
)

const (
	valuesOf = "/values/team/prod-0000/apps/addon-00"
	password = "word-of-a-secret"
)

// workload starts the API server of prod-0000, on which addon-00 is installed, and returns it with the objects that lead there.
func workload(t *testing.T, misbehaves fleettest.Misbehaviour) (*fleettest.Server, []client.Object) {
	t.Helper()
	isWell := true
	s := fleettest.Start(t, func(r *http.Request) http.HandlerFunc {
		if isWell {
			return nil
		}
		return misbehaves(r)
	})
	s.Remembers.Store(true)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	spec, err := json.Marshal(addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "addon-00", Values: &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 4}`)},
		ValuesFrom: []addonsv1.ValuesReference{{Kind: "Secret", Name: "passwords"}, {Kind: "ConfigMap", Name: "gone"}}}}})
	must.Succeed(t, err)
	objects := append(fleetOf(t, 2, 1),
		&corev1.Secret{ObjectMeta: named("prod-0000-kubeconfig"), Data: map[string][]byte{"value": s.Kubeconfig(t)}},
		&corev1.Secret{ObjectMeta: named("passwords"), Data: map[string][]byte{"values.yaml": []byte("password: " + password)}},
		&appsv1.ControllerRevision{ObjectMeta: named("installed"), Data: runtime.RawExtension{Raw: spec}})
	for _, o := range objects {
		if ca, isCluster := o.(*addonsv1.ClusterAddon); isCluster {
			ca.Spec.ClusterName = ca.Name
		}
	}
	ca := &addonsv1.ClusterAddon{ObjectMeta: named("prod-0000"), Spec: addonsv1.ClusterAddonSpec{ClusterName: "prod-0000"}}
	c, err := observed.Workload(t.Context(), fake.NewClientBuilder().WithObjects(objects[len(objects)-3]).Build(), ca, "")
	must.Succeed(t, err)
	r := &record.Record{
		Summary: record.Summary{Release: record.Release{Namespace: "apps", Name: "addon-00"}, Revision: 1, Status: record.StatusDeployed, Digest: "sha256:1", Owner: "team/prod-0000",
			Terms: record.Terms{Stack: "platform"}, StackRevision: "installed", Chart: "web", Version: "1.0.0"},
		Helm: &helmrelease.Release{Name: "addon-00", Namespace: "apps", Version: 1, Info: &helmrelease.Info{Status: "deployed"},
			Config: map[string]any{"password": password, "replicas": 3, hostile: hostile, "long": strings.Repeat("long", 50)}},
		State: &record.State{Format: 1, Sensitive: []string{password}},
	}
	r.Seal("salt")
	store := &record.Store{Client: c, Writer: c, Release: r.Release, Clock: clock.RealClock{}}
	must.Succeed(t, store.Create(t.Context(), r))
	isWell = misbehaves == nil
	return s, objects
}

// The values of an add-on are those of its release record, with the places that they are from. Other views read no workload cluster.
func TestValues(t *testing.T) {
	s, objects := workload(t, nil)
	secrets, bounded := 0, false
	h := pageOf(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, isSecret := o.(*corev1.Secret); isSecret {
			secrets++
			_, bounded = ctx.Deadline()
		}
		return c.Get(ctx, key, o, options...)
	}}, objects...)
	before := s.Requests("", "")
	for _, path := range paths {
		if w := get(h, path, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if asked := s.Requests("", "") - before; asked > 0 || secrets > 0 {
		t.Errorf("views that show no values sent %d requests to the workload cluster, and read %d Secrets", asked, secrets)
	}
	if body := get(h, "/cluster/team/prod-0000", nil).Body.String(); !strings.Contains(body, `<a href="`+valuesOf+`">`) {
		t.Error(body)
	}
	w := get(h, valuesOf, nil)
	body := w.Body.String()
	isHarmless(t, valuesOf, body)
	if w.Code != http.StatusOK || !bounded || !strings.Contains(body, `data-reading=""`) || strings.Contains(body, password) || strings.Contains(body, strings.Repeat("long", 20)) {
		t.Errorf("%d, bounded: %t: %s", w.Code, bounded, body)
	}
	cells := regexp.MustCompile(`(<[^>]*>)+`).ReplaceAllString(html.UnescapeString(body), "|")
	for _, part := range []string{`password|"[hidden]"|Secret passwords, key values.yaml`, `replicas|3|AddonStack platform, addons[addon-00].values, which has another value now`,
		"alert(1)", "ConfigMap gone, key values.yaml can't be read: ", "kubectl chandler get values prod-0000 addon-00 --origins -n team"} {
		if !strings.Contains(cells, part) {
			t.Errorf("%s isn't in %s", part, cells)
		}
	}
}

// A workload cluster that can't be read, or does as it likes, is a problem on the page of its values alone.
func TestValuesThatCanNotBeRead(t *testing.T) {
	garbage := func(text string) fleettest.Misbehaviour {
		return func(*http.Request) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
		}
	}
	for name, tc := range map[string]struct {
		misbehaves fleettest.Misbehaviour
		kubeconfig func(*corev1.Secret) error // reads it
		want       string
	}{
		"a forbidden kubeconfig": {kubeconfig: func(*corev1.Secret) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "prod-0000-kubeconfig", nil)
		}, want: "forbidden"},
		"a hostile kubeconfig": {kubeconfig: func(s *corev1.Secret) error {
			s.Data = map[string][]byte{"value": []byte(hostile)}
			return nil
		}, want: "team/prod-0000-kubeconfig"},
		"no record": {misbehaves: garbage(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`), want: "no release apps/addon-00"},
		"garbage":   {misbehaves: garbage(hostile), want: "apps/addon-00"},
		"an error":  {misbehaves: garbage(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"alert(1)<img src=x>` + "\u202e" + `"}`), want: "apps/addon-00"},
	} {
		_, objects := workload(t, tc.misbehaves)
		h := pageOf(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			if secret, isSecret := o.(*corev1.Secret); isSecret && tc.kubeconfig != nil {
				return tc.kubeconfig(secret)
			}
			return err
		}}, objects...)
		isProblem(t, name, get(h, valuesOf, nil), tc.want)
	}
}

// A workload cluster that doesn't answer holds up no other view, and isn't waited for once the browser has gone.
func TestValuesOfASilentCluster(t *testing.T) {
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	asked := make(chan struct{}, 1)
	_, objects := workload(t, func(*http.Request) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			select {
			case asked <- struct{}{}:
			default: // it was told
			}
			<-r.Context().Done()
		}
	})
	h, w, shown := pageOf(t, interceptor.Funcs{}, objects...), httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(shown)
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:8080"+valuesOf, nil))
	}()
	<-asked
	for _, path := range paths {
		if w := get(h, path, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	leave()
	<-shown
	isProblem(t, "silence", w, context.Canceled.Error())
}

// isProblem checks that a page of values shows a problem, no values, and the command.
func isProblem(t *testing.T, name string, w *httptest.ResponseRecorder, want string) {
	t.Helper()
	body := w.Body.String()
	isHarmless(t, name, body)
	_, alert, _ := strings.Cut(body, `role="alert">`)
	alert, _, _ = strings.Cut(alert, "</p>")
	if w.Code != http.StatusOK || !strings.Contains(alert, want) || strings.Contains(body, "<table>") || !strings.Contains(body, "get values prod-0000 addon-00 --origins") {
		t.Errorf("%s: %d: %s", name, w.Code, body)
	}
}
