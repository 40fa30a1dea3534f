// SPDX-License-Identifier: Apache-2.0

package origins_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/origins"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestLayers reads an add-on with each kind of layer, for a Cluster and for others, and with objects that aren't there or take much memory.
func TestLayers(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, clusterv1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	spec, err := json.Marshal(addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{
		Name: "web", Values: &apiextensionsv1.JSON{Raw: []byte(`{"a": 1}`)}, ValuesTemplate: "name: {{ .Member.name }}",
		ValuesFrom: []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: "bomb"}, {Kind: "Secret", Name: "{{ .Member.name }}-own"}, {Kind: "Secret", Name: "none"}},
	}}})
	must.Succeed(t, err)
	tens := func(of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", 10), ",") + "]" }
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&appsv1.ControllerRevision{ObjectMeta: named("platform-1"), Data: runtime.RawExtension{Raw: spec}}, &clusterv1.Cluster{ObjectMeta: named("prod")},
		&corev1.ConfigMap{ObjectMeta: named("bomb"), Data: map[string]string{
			"values.yaml": "a: &a " + strings.Repeat("x", 1<<19) + "\nb: &b " + tens("*a") + "\nc: &c " + tens("*b") + "\nd: " + tens("*c") + "\n",
		}},
		&corev1.Secret{ObjectMeta: named("prod-own"), Data: map[string][]byte{"values.yaml": []byte("b: 2")}},
	).Build()
	const bomb, missing, written, template = "ConfigMap bomb, key values.yaml", "Secret none, key values.yaml", "AddonStack platform, addons[web].values", "AddonStack platform, addons[web].valuesTemplate"
	type read map[string]string // the values, or what the problem says
	for name, tc := range map[string]struct {
		of       addonsv1.ClusterAddonSpec
		revision string
		want     read
	}{
		"a Cluster": {addonsv1.ClusterAddonSpec{ClusterName: "prod"}, "platform-1", read{
			bomb: "!16777216 bytes", "Secret prod-own, key values.yaml": `{"b":2}`, missing: "!doesn't exist", written: `{"a":1}`, template: `{"name":"prod"}`,
		}},
		"a Secret": {addonsv1.ClusterAddonSpec{ClusterName: "prod", ClusterRef: &addonsv1.ClusterReference{Kind: addonsv1.KindSecret}}, "platform-1", read{
			bomb: "!16777216 bytes", "Secret {{ .Member.name }}-own, key values.yaml": "!only Chandler knows", missing: "!doesn't exist", written: `{"a":1}`, template: "!only Chandler knows",
		}},
		"a Cluster that is gone": {addonsv1.ClusterAddonSpec{ClusterName: "gone"}, "platform-1", read{
			bomb: "!16777216 bytes", "Secret {{ .Member.name }}-own, key values.yaml": "!Cluster gone", missing: "!doesn't exist", written: `{"a":1}`, template: "!Cluster gone",
		}},
		"a revision that is gone": {addonsv1.ClusterAddonSpec{ClusterName: "prod"}, "platform-2", read{"AddonStack platform": "!platform-2"}},
	} {
		r := origins.Reader{Client: c, Cluster: &addonsv1.ClusterAddon{ObjectMeta: named("prod"), Spec: tc.of}}
		got := read{}
		for _, l := range r.Layers(t.Context(), "platform", tc.revision, "web") {
			values, err := json.Marshal(l.Values)
			must.Succeed(t, err)
			if got[l.From] = string(values); l.Problem != nil {
				got[l.From] = "!" + l.Problem.Error()
			}
		}
		for from, want := range tc.want {
			is, found := got[from]
			isTold := is == want
			if problem, isProblem := strings.CutPrefix(want, "!"); isProblem {
				isTold = strings.HasPrefix(is, "!") && strings.Contains(is, problem)
			}
			if !found || !isTold {
				t.Errorf("%s: %s: %q, want %q", name, from, is, want)
			}
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
