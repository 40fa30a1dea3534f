// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestUnmetCheckEndsWithTheCondition has an object whose check isn't true say why, with its condition Ready.
func TestUnmetCheckEndsWithTheCondition(t *testing.T) {
	checks, err := readiness.Compile([]addonsv1.ReadinessCheck{{APIVersion: "example.org/v1", Kind: "Certificate", Expression: "has(self.status.issued)"}})
	must.Succeed(t, err)
	for name, tc := range map[string]struct {
		status map[string]any
		ends   string
	}{
		"it says nothing":       {map[string]any{}, "has(self.status.issued)"},
		"it isn't ready":        {conditions("False"), "the issuer says no"},
		"nor knows whether":     {conditions("Unknown"), "the issuer says no"},
		"it is ready otherwise": {conditions("True"), "has(self.status.issued)"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"status": tc.status}}
		o.SetAPIVersion("example.org/v1")
		o.SetKind("Certificate")
		is := checks.Evaluate()(o)
		if is.Phase != observe.InProgress || !strings.HasSuffix(is.Message, tc.ends) {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

func conditions(ready string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Denied", "message": "the issuer says no"}}}
}

// TestReadyOnceThere has an object that is ready once it is there be so by its metadata alone.
func TestReadyOnceThere(t *testing.T) {
	evaluate := readiness.Checks(nil).Evaluate()
	for title, tc := range map[string]struct {
		apiVersion, kind string
		spec             map[string]any
		is               bool
	}{
		"a ConfigMap":                    {"v1", "ConfigMap", nil, true},
		"a Role":                         {"rbac.authorization.k8s.io/v1", "Role", nil, true},
		"another group's Role":           {"example.org/v1", "Role", nil, false},
		"a Service":                      {"v1", "Service", nil, true},
		"a Service by name":              {"v1", "Service", map[string]any{"type": "ExternalName"}, true},
		"a Service with a load balancer": {"v1", "Service", map[string]any{"type": "LoadBalancer"}, false},
		"another group's Service":        {"serving.knative.dev/v1", "Service", nil, false},
		"a Deployment":                   {"apps/v1", "Deployment", map[string]any{"replicas": int64(1)}, false},
		"a Namespace":                    {"v1", "Namespace", nil, false},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
		o.SetAPIVersion(tc.apiVersion)
		o.SetKind(tc.kind)
		metadata := o.DeepCopy()
		if tc.spec != nil {
			o.Object["spec"] = tc.spec
		}
		must.Equal(t, tc.is, readiness.IsReadyOnceThere(o), title)
		if tc.is {
			must.Equal(t, observe.Current, evaluate(metadata).Phase, title)
			must.Equal(t, observe.Current, evaluate(o).Phase, title)
		}
	}
}
