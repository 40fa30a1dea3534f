// SPDX-License-Identifier: Apache-2.0

package addonstack_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// foresee returns the revision that a spec would be, in a template as people write it.
func foresee(t *testing.T, r *addonstack.Reconciler, s *addonsv1.AddonStack, spec addonsv1.AddonStackSpec) (*appsv1.ControllerRevision, error) {
	t.Helper()
	text, err := json.Marshal(spec)
	must.Succeed(t, err)
	template := map[string]any{}
	must.Succeed(t, json.Unmarshal(text, &template))
	edited := s.DeepCopy()
	edited.Spec, edited.Generation = *spec.DeepCopy(), s.Generation+1
	return r.Foresee(t.Context(), edited, &unstructured.Unstructured{Object: map[string]any{"spec": template}}, revisionsOf(t, r, s), func() {})
}

func revisionsOf(t *testing.T, r *addonstack.Reconciler, s *addonsv1.AddonStack) []appsv1.ControllerRevision {
	t.Helper()
	revisions, err := management.Revisions(t.Context(), r.Client, s)
	must.Succeed(t, err)
	return revisions
}

// The revision that is foreseen is the one that the edit makes, by name and content, and nothing is written before.
func TestForeseenRevisionIsTheOneOfTheEdit(t *testing.T) {
	rolledOut := func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{}
		spec.Addons[0].ValuesFrom = []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: "values"}}
	}
	for name, edit := range map[string]func(*addonsv1.AddonStackSpec){
		"nothing":       func(*addonsv1.AddonStackSpec) {},
		"another chart": func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Chart.Path = "web-2" },
		"values":        func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].ValuesTemplate = "{a: 1}" },
		"an add-on more": func(spec *addonsv1.AddonStackSpec) {
			spec.Addons = append(spec.Addons, addonsv1.Addon{Name: "more", Chart: addonsv1.ChartSource{Path: "more"}})
		},
		"policies alone":        func(spec *addonsv1.AddonStackSpec) { spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan },
		"a rollout with values": rolledOut,
	} {
		t.Run(name, func(t *testing.T) {
			r, s, revision := keeping(t)
			must.Succeed(t, r.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "values"}, Data: map[string]string{"values": "a: 1"}}))
			r.Values = valuesource.NewReader(r.Client, r.Client, nil)
			stacks.Read(t, r.Client, s)
			edited := s.DeepCopy()
			edit(&edited.Spec)
			is, err := foresee(t, r, s, edited.Spec)
			must.Succeed(t, err)
			before := &appsv1.ControllerRevisionList{}
			must.Succeed(t, r.Client.List(t.Context(), before))
			must.Len(t, 1, before.Items, "nothing is kept")
			must.Succeed(t, r.Client.Update(t.Context(), edited))
			written, err := r.Foresee(t.Context(), edited.DeepCopy(), nil, revisionsOf(t, r, edited), func() {})
			must.Succeed(t, err)
			must.Equal(t, is.Name, written.Name, "as it is written")
			reconcile(t, r, edited)
			must.Equal(t, edited.Status.LatestRevision, is.Name, "the revision")
			if stays := name == "nothing" || name == "policies alone"; stays != (is.Name == revision.Name) {
				t.Errorf("the revision before is %s, and this one is %s", revision.Name, is.Name)
			}
			kept := &appsv1.ControllerRevision{}
			must.Succeed(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(is), kept))
			if !stack.Keeps(kept, is.Data.Raw) {
				t.Errorf("it keeps %s, and was foreseen with %s", kept.Data.Raw, is.Data.Raw)
			}
		})
	}
}

// So is that of a stack which isn't there yet, for each sample. One that follows versions has to name them.
func TestForeseenRevisionsOfSamples(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	must.Succeed(t, err)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		sample := &addonsv1.AddonStack{}
		if yaml.Unmarshal(text, sample) != nil || sample.Kind != "AddonStack" || sample.APIVersion != addonsv1.GroupVersion.String() || sample.Spec.Source != nil {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, _, _ := keeping(t)
			r.Values = valuesource.NewReader(r.Client, r.Client, nil)
			sample.Namespace = "team"
			sample.Name += "-new"
			is, err := foresee(t, r, &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: sample.Name}}, sample.Spec)
			if len(stack.Followers(&sample.Spec)) > 0 {
				if failed, ok := errors.AsType[*failure.Error](err); !ok || failed.Reason != addonsv1.PlanVersionNotNamedReason {
					t.Errorf("got %v", err)
				}
				return
			}
			must.Succeed(t, err)
			seen++
			sample.UID, sample.Generation = types.UID(sample.Name), 1
			must.Succeed(t, r.Client.Create(t.Context(), sample))
			reconcile(t, r, sample)
			must.Equal(t, sample.Status.LatestRevision, is.Name, "the revision")
		})
	}
	if seen < 5 {
		t.Errorf("%d samples have been foreseen", seen)
	}
}
