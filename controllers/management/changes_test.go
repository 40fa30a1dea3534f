// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/changes"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

func clusterAddon() *addonsv1.ClusterAddon {
	ca := &addonsv1.ClusterAddon{}
	ca.Namespace, ca.Name, ca.ResourceVersion = "default", "prod", "7"
	ca.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
	ca.Spec.ClusterName = "prod"
	for _, name := range []string{"a", "b", "c"} {
		ca.Spec.Stacks = append(ca.Spec.Stacks, addonsv1.StackRevision{Name: name, Revision: name + "-1"})
	}
	return ca
}

func TestChangesSayOnlyWhatDiffers(t *testing.T) {
	before := clusterAddon()
	for name, tc := range map[string]struct {
		change func(*addonsv1.ClusterAddon)
		want   []string
	}{
		"nothing": {func(*addonsv1.ClusterAddon) {}, nil},
		"a field of an element": {
			func(ca *addonsv1.ClusterAddon) { ca.Spec.Stacks[1].Revision = "b-2" },
			[]string{`add /spec/stacks/1/revision "b-2"`},
		},
		"an element less, and a field of the one behind it": {
			func(ca *addonsv1.ClusterAddon) {
				ca.Spec.Stacks = append(ca.Spec.Stacks[:1:1], addonsv1.StackRevision{Name: "c"})
			},
			[]string{`remove /spec/stacks/1 null`, `remove /spec/stacks/1/revision null`},
		},
		"an element more": {
			func(ca *addonsv1.ClusterAddon) {
				ca.Spec.Stacks = append([]addonsv1.StackRevision{{Name: "0"}}, ca.Spec.Stacks...)
			},
			[]string{`add /spec/stacks/0 {"name":"0"}`},
		},
		"another order": {
			func(ca *addonsv1.ClusterAddon) {
				ca.Spec.Stacks = []addonsv1.StackRevision{ca.Spec.Stacks[1], ca.Spec.Stacks[0]}
			},
			[]string{`add /spec/stacks [{"name":"b","revision":"b-1"},{"name":"a","revision":"a-1"}]`},
		},
		"no element left": {func(ca *addonsv1.ClusterAddon) { ca.Spec.Stacks = nil }, []string{`remove /spec/stacks null`}},
		"the first status": {
			func(ca *addonsv1.ClusterAddon) { ca.Status.ReadyAddons = "0/0" },
			[]string{`add /status {"readyAddons":"0/0"}`},
		},
		"the watch label": {
			func(ca *addonsv1.ClusterAddon) { ca.Labels[clusterv1.WatchLabel] = "green" },
			[]string{`add /metadata/labels/cluster.x-k8s.io~1watch-filter "green"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			patch, err := management.Changes(before, after)
			must.Succeed(t, err)
			data, err := patch.Data(after)
			must.Succeed(t, err)
			var operations []changes.Operation
			must.Succeed(t, json.Unmarshal(data, &operations))
			got := []string{}
			for _, o := range operations {
				value, _ := json.Marshal(o.Value)
				got = append(got, fmt.Sprintf("%s %s %s", o.Op, o.Path, value))
			}
			want := append([]string{`replace /metadata/resourceVersion "7"`}, tc.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestChangesOnAnAPIServer writes objects of a newer API, which has a field more
// in each list.
func TestChangesOnAnAPIServer(t *testing.T) {
	long.InCI(t)
	c := startWithNewerAPI(t)
	newer := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterAddon
metadata: {name: prod, namespace: default, labels: {cluster.x-k8s.io/watch-filter: blue}}
spec:
  clusterName: prod
  stacks: [{name: a, revision: a-1, tomorrow: a}, {name: b, revision: b-1, tomorrow: b}, {name: c, tomorrow: c}]
`), newer); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, c.Create(t.Context(), newer))
	seen := clusterAddonOf(t, c)
	after := seen.DeepCopy()
	after.Spec.Stacks = []addonsv1.StackRevision{{Name: "0", Revision: "0-1"}, {Name: "a", Revision: "a-2"}, {Name: "c"}}
	write(t, c, seen, after)
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(newer), newer))
	stacks, _, _ := unstructured.NestedSlice(newer.Object, "spec", "stacks")
	want := []any{
		map[string]any{"name": "0", "revision": "0-1"},
		map[string]any{"name": "a", "revision": "a-2", "tomorrow": "a"},
		map[string]any{"name": "c", "tomorrow": "c"},
	}
	if diff := cmp.Diff(want, stacks); diff != "" {
		t.Errorf("a newer version's fields are to stay: -want +got:\n%s", diff)
	}

	for name, change := range map[string]func(*addonsv1.ClusterAddon){
		"a list that is otherwise than it was seen": func(ca *addonsv1.ClusterAddon) { ca.Spec.Stacks[1].Revision = "b-2" },
		"something that was written in between":     func(ca *addonsv1.ClusterAddon) { ca.Labels["more"] = "x" },
	} {
		late := seen.DeepCopy()
		if change(late); !apierrors.IsConflict(patch(t, c, seen, late)) {
			t.Errorf("%s isn't refused", name)
		}
	}
	t.Run("a status of an object that went to another instance", func(t *testing.T) {
		seen = clusterAddonOf(t, c)
		for _, label := range []string{"green", ""} {
			moved := seen.DeepCopy()
			if moved.Labels[clusterv1.WatchLabel] = label; label == "" {
				moved.Labels = nil
			}
			must.Succeed(t, c.Update(t.Context(), moved))
			late := seen.DeepCopy()
			late.Status.ReadyAddons = "1/1"
			err := (&management.Statuses{Client: c, Clock: clock.RealClock{}}).Patch(t.Context(), seen, late)
			if !apierrors.IsConflict(err) {
				t.Errorf("Patch() = %v with label %q; want it refused", err, label)
			}
			moved.Labels = seen.Labels
			must.Succeed(t, c.Update(t.Context(), moved))
			seen.ResourceVersion = moved.ResourceVersion
		}
	})
	t.Run("what isn't valid isn't a lost race", func(t *testing.T) {
		seen = clusterAddonOf(t, c)
		wrong := seen.DeepCopy()
		wrong.Spec.ClusterName = "other"
		if err := patch(t, c, seen, wrong); !apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
			t.Errorf("Patch() = %v, lost %v; want an error that somebody sees", err, apierrors.IsConflict(err))
		}
	})
	t.Run("anything becomes anything", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			seen = clusterAddonOf(t, c)
			after := seen.DeepCopy()
			after.Spec.Stacks = nil
			for _, i := range random.Perm(6)[:random.IntN(7)] {
				after.Spec.Stacks = append(after.Spec.Stacks, addonsv1.StackRevision{Name: string(rune('a' + i)), Revision: []string{"", "1", "2"}[random.IntN(3)]})
			}
			if random.IntN(3) > 0 { // mostly in order, as the controller writes them
				slices.SortFunc(after.Spec.Stacks, func(a, b addonsv1.StackRevision) int { return strings.Compare(a.Name, b.Name) })
			}
			want := after.DeepCopy()
			write(t, c, seen, after)
			if diff := cmp.Diff(want.Spec, clusterAddonOf(t, c).Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("from %v: -want +got:\n%s", seen.Spec.Stacks, diff)
			}
		}
	})
	t.Run("more than a JSON patch can hold", func(t *testing.T) {
		seen = clusterAddonOf(t, c)
		for i := range 2500 {
			seen.Status.Addons = append(seen.Status.Addons, addonsv1.AddonStatus{Name: fmt.Sprintf("a%d", i), Namespace: "n", Stack: "s", Phase: addonsv1.AddonReady})
		}
		write(t, c.Status(), clusterAddonOf(t, c), seen)
		after := seen.DeepCopy()
		for i := range after.Status.Addons {
			after.Status.Addons[i].Phase = addonsv1.AddonFailed
		}
		write(t, c.Status(), seen, after)
		if got := clusterAddonOf(t, c).Status.Addons; len(got) != 2500 || got[2499].Phase != addonsv1.AddonFailed {
			t.Errorf("%d add-ons", len(got))
		}
	})
	t.Run("texts that are too long", func(t *testing.T) {
		seen = clusterAddonOf(t, c)
		after := seen.DeepCopy()
		filled := map[string]any{"status": filledBy(statusSchema(t))}
		must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(filled, after))
		after.TypeMeta, after.ObjectMeta, after.Spec = seen.TypeMeta, seen.ObjectMeta, seen.Spec
		must.Succeed(t, (&management.Statuses{Client: c, Clock: clock.RealClock{}}).Patch(t.Context(), seen, after))
		if got := clusterAddonOf(t, c).Status.Addons[0].Drift.LastManagers[0]; len(got) != 128 {
			t.Errorf("it has %d bytes", len(got))
		}
	})
}

// statusSchema returns that of a ClusterAddon's status.
func statusSchema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/addons.cluster.x-k8s.io_clusteraddons.yaml")
	must.Succeed(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(t, yaml.Unmarshal(data, crd))
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	return &status
}

// filledBy returns a value with all fields that a schema has. Texts that may be anything have 40,000 characters.
func filledBy(schema *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case len(schema.Enum) > 0:
		return strings.Trim(string(schema.Enum[0].Raw), `"`)
	case schema.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case schema.Pattern != "":
		return "Ready"
	case schema.Type == "string":
		return strings.Repeat("x", 40_000)
	case schema.Type == "array":
		return []any{filledBy(schema.Items.Schema)}
	case schema.Type == "object":
		fields := map[string]any{}
		for name, field := range schema.Properties {
			fields[name] = filledBy(&field)
		}
		return fields
	case schema.Type == "boolean":
		return true
	}
	return int64(1)
}

func clusterAddonOf(t *testing.T, c client.Client) *addonsv1.ClusterAddon {
	t.Helper()
	ca := &addonsv1.ClusterAddon{}
	must.Succeed(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "prod"}, ca))
	return ca
}

// patcher is a client, or of its Status().
type patcher[O any] interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...O) error
}

func patch[O any](t *testing.T, c patcher[O], before, after client.Object) error {
	t.Helper()
	changed, err := management.Changes(before, after)
	must.Succeed(t, err)
	return c.Patch(t.Context(), after, changed)
}

func write[O any](t *testing.T, c patcher[O], before, after client.Object) {
	t.Helper()
	must.Succeed(t, patch(t, c, before, after))
}

// startWithNewerAPI starts an API server whose ClusterAddons have a field
// "tomorrow" in each of spec.stacks.
func startWithNewerAPI(t *testing.T) client.Client {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/addons.cluster.x-k8s.io_clusteraddons.yaml")
	must.Succeed(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(t, yaml.Unmarshal(data, crd))
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["stacks"].Items.Schema.Properties["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	if data, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "crd.yaml")
	must.Succeed(t, os.WriteFile(file, data, 0o600))
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "hub", CRDPaths: []string{file}})
	must.Succeed(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	scheme := runtime.NewScheme()
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must.Succeed(t, err)
	return c
}
