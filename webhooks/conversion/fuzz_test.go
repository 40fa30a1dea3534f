// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"
	"sigs.k8s.io/randfill"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
)

// TestRoundTrips is Cluster API's own test of conversions, with 10000 objects each way.
func TestRoundTrips(t *testing.T) {
	capiconversion.SpokeConverterFuzzTestFunc(capiconversion.SpokeConverterFuzzTestFuncInput[*addonsv1.AddonStack, *addonsv1alpha1.AddonStack]{
		Scheme:                testScheme(t),
		ConvertHubToSpokeFunc: conversion.ConvertAddonStackHubToV1Alpha1,
		ConvertSpokeToHubFunc: conversion.ConvertAddonStackV1Alpha1ToHub,
		FuzzerFuncs:           []fuzzer.FuzzerFuncs{valuesFuncs},
	})(t)
}

// TestEditsWin edits random stacks in v1alpha1: the edit is what v1alpha1 shows next, and all that v1alpha1 lacks stays.
func TestEditsWin(t *testing.T) {
	fill := capiconversion.GetFuzzer(testScheme(t), valuesFuncs)
	for range 10000 {
		hub, edit := &addonsv1.AddonStack{}, &addonsv1alpha1.AddonStack{}
		fill.Fill(hub)
		fill.Fill(edit)
		spoke := toSpoke(t, hub)
		spoke.Spec, spoke.Status = edit.Spec, edit.Status
		edited := toHub(t, spoke)
		read := toSpoke(t, edited)
		if !equality.Semantic.DeepEqual(read.Spec, edit.Spec) || !equality.Semantic.DeepEqual(read.Status, edit.Status) {
			t.Fatalf("v1alpha1 shows something else than was written (-written +read):\n%s", cmp.Diff(edit, read))
		}
		if before, after := conversion.Lacking(hub.Spec), conversion.Lacking(edited.Spec); !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("a field that v1alpha1 lacks was changed (-before +after):\n%s", cmp.Diff(before, after))
		}
	}
}

// FuzzAnnotation reads annotations that nobody but a test would write.
func FuzzAnnotation(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{"clusterKinds":null}}`, `{"spec":{"updates":{}}}`,
		`{"spec":{"addons":[{"name":"a"},{"name":"a"}]}}`, `{"spec":{"addons":[{"name":"cilium","values":{"a":1e999}}]}}`,
		`{"spec":{"degradedAfterSeconds":99999999999}}`, `{"spec":{"updates":{"interval":"soon"}}}`,
		`{"metadata":{"name":"other","annotations":{"a":"b"}},"spec":{"serviceAccountName":"deployer"},"status":{"latestRevision":"x"}}`,
		`{"spec":{"source":{"path":"/etc"},"removalLimit":"100%","drift":{"policy":"Ignore"}}}`,
		strings.Repeat(`{"spec":`, 10000), `{"spec":{"addons":[{"values":` + strings.Repeat(`[`, 10000) + `]}}`,
		`{"spec":{"addons":[` + strings.Repeat(`{},`, 100000) + `{}]}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		spoke := &addonsv1alpha1.AddonStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "platform", Annotations: map[string]string{capiconversion.DataAnnotation: annotation},
		}}
		hub := &addonsv1.AddonStack{}
		if err := conversion.ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke, hub); err != nil {
			if !strings.Contains(err.Error(), "team-a/platform") || !strings.Contains(err.Error(), capiconversion.DataAnnotation) {
				t.Errorf("the error doesn't name the object and the annotation: %v", err)
			}
			return
		}
		if !equality.Semantic.DeepEqual(hub.ObjectMeta, metav1.ObjectMeta{Namespace: "team-a", Name: "platform"}) || !equality.Semantic.DeepEqual(hub.Status, addonsv1.AddonStackStatus{}) {
			t.Errorf("the annotation wrote metadata or status: %v, %v", hub.ObjectMeta, hub.Status)
		}
		if lacking := conversion.Lacking(hub.Spec); !equality.Semantic.DeepEqual(hub.Spec, lacking) {
			t.Errorf("the annotation wrote a field that v1alpha1 has:\n%s", cmp.Diff(lacking, hub.Spec))
		}
		if again := toHub(t, toSpoke(t, hub)); !equality.Semantic.DeepEqual(hub, again) {
			t.Errorf("not stable (-first +second):\n%s", cmp.Diff(hub, again))
		}
	})
}

// valuesFuncs fills in JSON, to whose form the API server itself holds values.
func valuesFuncs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(values *apiextensionsv1.JSON, c randfill.Continue) {
			values.Raw, _ = json.Marshal(map[string]any{c.String(0): c.String(0), "n": c.Int31(), "l": []bool{c.Bool()}})
		},
	}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, addonsv1alpha1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	return scheme
}

// toHub converts a copy, as the parts of what is converted are taken over.
func toHub(t *testing.T, spoke *addonsv1alpha1.AddonStack) *addonsv1.AddonStack {
	t.Helper()
	hub := &addonsv1.AddonStack{}
	must.Succeed(t, conversion.ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke.DeepCopy(), hub))
	return hub
}

func toSpoke(t *testing.T, hub *addonsv1.AddonStack) *addonsv1alpha1.AddonStack {
	t.Helper()
	spoke := &addonsv1alpha1.AddonStack{}
	must.Succeed(t, conversion.ConvertAddonStackHubToV1Alpha1(t.Context(), hub.DeepCopy(), spoke))
	return spoke
}
