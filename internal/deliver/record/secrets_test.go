// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestSecretsOfARecord are those of its manifest and of its hooks, whatever else these have, as far as they can be read.
func TestSecretsOfARecord(t *testing.T) {
	t.Parallel()
	manifest := func(kind, name string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	for title, tc := range map[string]struct {
		manifest string
		hooks    []string
		want     []string
	}{
		"none":              {"", nil, nil},
		"no Secret":         {manifest("ConfigMap", "a"), []string{manifest("Job", "b")}, nil},
		"the only document": {manifest("Secret", "a"), nil, []string{"a"}},
		"among others":      {"---\n" + manifest("ConfigMap", "a") + "---\n" + manifest("Secret", "b") + "\n---\n# a comment\n" + manifest("Secret", "c"), nil, []string{"b", "c"}},
		"in hooks":          {manifest("ConfigMap", "a"), []string{manifest("Secret", "b"), manifest("Secret", "c") + "---\n" + manifest("Job", "d")}, []string{"b", "c"}},
		"quoted":            {"apiVersion: v1\n\"kind\": 'Secret'\nmetadata: {name: a}\n", nil, []string{"a"}},
		"in JSON":           {`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`, nil, []string{"a"}},
		"of another group":  {"apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: a}\n" + "---\n" + manifest("SecretStore", "b"), nil, nil},
		"within a text":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    kind: Secret\n", nil, nil},
	} {
		rec := &record.Record{Helm: &helmrelease.Release{Manifest: tc.manifest}}
		for _, hook := range tc.hooks {
			rec.Helm.Hooks = append(rec.Helm.Hooks, &helmrelease.Hook{Manifest: hook})
		}
		var found []string
		for _, o := range rec.Secrets() {
			found = append(found, o.GetName())
		}
		if slices.Sort(found); !slices.Equal(found, tc.want) {
			t.Errorf("%s: found %s, expected %s", title, strings.Join(found, " "), strings.Join(tc.want, " "))
		}
	}
}

// TestMetadataThatIsRefused has an API server that lets nobody patch a Secret. The error names the Secret as each other
// refused write does.
func TestMetadataThatIsRefused(t *testing.T) {
	t.Parallel()
	refused := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "it", nil)
		},
	}).Build()
	release := record.Release{Namespace: "apps", Name: "web"}
	store := &record.Store{Client: refused, Release: release, Clock: clock.RealClock{}}
	before := record.Summary{Release: release, Revision: 1, SecretName: record.SecretName("web", 1)}
	_, err := store.Rewrite(t.Context(), before, before)
	fault, ok := errors.AsType[*record.Fault](err)
	if !ok || fault.Kind != record.Unwritten || fault.Secret != "apps/"+before.SecretName || !apierrors.IsForbidden(fault) {
		t.Errorf("%+v", fault)
	}
}
