// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
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
)

// Cluster API's own test of conversions, 10000 objects each way: any hub object at
// all, and each v1alpha1 object as it is read back.
func TestRoundTrips(t *testing.T) {
	capiconversion.SpokeConverterFuzzTestFunc(capiconversion.SpokeConverterFuzzTestFuncInput[*addonsv1.AddonStack, *addonsv1alpha1.AddonStack]{
		Scheme:                testScheme(t),
		ConvertHubToSpokeFunc: ConvertAddonStackHubToV1Alpha1,
		ConvertSpokeToHubFunc: ConvertAddonStackV1Alpha1ToHub,
		FuzzerFuncs:           []fuzzer.FuzzerFuncs{hubFuncs, spokeFuncs, canonicalFuncs},
	})(t)
}

// What is written may look unlike what is read back, but it means the same; and
// what is read back, written again, is read back as it is.
func TestWritingWhatIsReadBackIsNoChange(t *testing.T) {
	ctx := t.Context()
	fill := capiconversion.GetFuzzer(testScheme(t), spokeFuncs)
	for range 10000 {
		written := &addonsv1alpha1.AddonStack{}
		fill.Fill(written)
		hub := toHub(ctx, t, written)
		read := toSpoke(ctx, t, hub)
		if diff := cmp.Diff(hub, toHub(ctx, t, read)); diff != "" && !equality.Semantic.DeepEqual(hub, toHub(ctx, t, read)) {
			t.Fatalf("reading and writing changed the hub (-before +after):\n%s", diff)
		}
		if again := toSpoke(ctx, t, toHub(ctx, t, read)); !equality.Semantic.DeepEqual(read, again) {
			t.Fatalf("read back differs (-first +second):\n%s", cmp.Diff(read, again))
		}
		if _, ok := read.Annotations[RestAnnotation]; ok {
			t.Fatalf("an object that v1alpha1 made needs the annotation: %s", read.Annotations[RestAnnotation])
		}
	}
}

// An edit in v1alpha1 is what v1alpha1 shows next, whatever else the hub has.
func TestEditsWin(t *testing.T) {
	ctx := t.Context()
	fill := capiconversion.GetFuzzer(testScheme(t), hubFuncs, spokeFuncs, canonicalFuncs)
	for range 10000 {
		hub, edit := &addonsv1.AddonStack{}, &addonsv1alpha1.AddonStack{}
		fill.Fill(hub)
		fill.Fill(edit)
		spoke := toSpoke(ctx, t, hub)
		spoke.Spec = edit.Spec
		edited := toHub(ctx, t, spoke)
		read := toSpoke(ctx, t, edited)
		if !equality.Semantic.DeepEqual(read.Spec, edit.Spec) {
			t.Fatalf("v1alpha1 shows something else than was written (-written +read):\n%s", cmp.Diff(edit.Spec, read.Spec))
		}
		if len(hub.Spec.Addons) > 1 && !keepsAddons(hub, edited, edit.Spec.ReleaseName) {
			t.Fatalf("an add-on that v1alpha1 doesn't name was lost or changed (-before +after):\n%s", cmp.Diff(hub.Spec.Addons, edited.Spec.Addons))
		}
	}
}

// FuzzRest reads annotations that nobody but a test would write.
func FuzzRest(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{"addons":null}}`, `{"spec":{"addons":[null]}}`, tooLarge,
		`{"spec":{"addons":[{"name":"a"},{"name":"a"}]}}`, `{"spec":{"addons":[{"name":"cilium","values":{"a":1e999}}]}}`,
		`{"spec":{"addons":[{"name":"cilium","progressDeadlineSeconds":99999999999}]}}`,
		`{"metadata":{"name":"other","annotations":{"a":"b"}},"spec":{"addons":[{"name":"b","dependsOn":["cilium"]}]}}`,
		`{"spec":{"addons":[{"name":"cilium","readiness":[{}],"valuesFrom":[{"kind":"Secret"}]},{"name":"web"}]},"status":{"instances":[{}]}}`,
		strings.Repeat(`{"spec":`, 10000), `{"spec":{"addons":[{"values":` + strings.Repeat(`[`, 10000) + `]}}`,
	} {
		f.Add(seed, "cilium")
	}
	f.Fuzz(func(t *testing.T, annotation, release string) {
		ctx := t.Context()
		release = strings.ToValidUTF8(release, "") // as the API server has it
		spoke := &addonsv1alpha1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "platform", Annotations: map[string]string{RestAnnotation: annotation}}}
		spoke.Spec.ReleaseName = release
		hub := &addonsv1.AddonStack{}
		if err := ConvertAddonStackV1Alpha1ToHub(ctx, spoke, hub); err != nil {
			if !strings.Contains(err.Error(), "team-a/platform") {
				t.Errorf("the error doesn't name the object: %v", err)
			}
			return
		}
		if _, ok := hub.Annotations[RestAnnotation]; ok || hub.Name != "platform" {
			t.Errorf("the annotation got into the hub's metadata: %v", hub.ObjectMeta)
		}
		if release != "" && hub.Spec.Addons[0].Name != release {
			t.Errorf("the add-on is named %q, not as v1alpha1 says", hub.Spec.Addons[0].Name)
		}
		// A rest too large for the annotation again is refused, and nothing else is.
		read := toSpoke(ctx, t, hub)
		if read.Annotations[RestAnnotation] == tooLarge {
			return
		}
		if again := toHub(ctx, t, read); !equality.Semantic.DeepEqual(hub, again) {
			t.Errorf("not stable (-first +second):\n%s", cmp.Diff(hub, again))
		}
	})
}

// keepsAddons says whether all add-ons but the named one, and the one that was
// shown, are as they were.
func keepsAddons(before, after *addonsv1.AddonStack, release string) bool {
	kept := map[string]addonsv1.Addon{}
	for _, a := range after.Spec.Addons {
		kept[a.Name] = a
	}
	for _, a := range before.Spec.Addons {
		if a.Name != release && !equality.Semantic.DeepEqual(kept[a.Name], a) {
			return false
		}
	}
	return true
}

// hubFuncs fills what the API server itself holds to its form: JSON, and names
// that are a key.
func hubFuncs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(values *apiextensionsv1.JSON, c randfill.Continue) {
			values.Raw, _ = json.Marshal(map[string]any{c.String(0): c.String(0), "n": c.Int31(), "l": []bool{c.Bool()}})
		},
		func(spec *addonsv1.AddonStackSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			taken := map[string]bool{}
			for i := range spec.Addons {
				for taken[spec.Addons[i].Name] {
					spec.Addons[i].Name += c.String(0) + "x"
				}
				taken[spec.Addons[i].Name] = true
			}
		},
		func(mode *addonsv1.ValuesTemplateMode, c randfill.Continue) {
			*mode = pick(c, "", addonsv1.ValuesTemplateModeStrict, addonsv1.ValuesTemplateModeLenient)
		},
		func(policy *addonsv1.AdoptionPolicy, c randfill.Continue) {
			*policy = pick(c, "", addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdopt, addonsv1.AdoptionPolicyAdoptIfEqual)
		},
		// As often valid, with one source, as with any of them.
		func(chart *addonsv1.ChartSource, c randfill.Continue) {
			c.FillNoCustom(chart)
			if chart.OCI != nil && c.Bool() {
				chart.OCI.URL = pick(c, "oci://registry.example.org/charts/cilium", "oci://host/c", "oci://host", "oci://", "http://host/c", "")
			}
			switch c.Intn(4) {
			case 0:
				*chart = addonsv1.ChartSource{OCI: chart.OCI, Version: chart.Version}
			case 1:
				*chart = addonsv1.ChartSource{Helm: chart.Helm, Version: chart.Version}
			case 2:
				*chart = addonsv1.ChartSource{Path: chart.Path}
			}
		},
	}
}

func spokeFuncs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(mode *addonsv1alpha1.ValuesTemplateMode, c randfill.Continue) {
			*mode = pick(c, "", addonsv1alpha1.ValuesTemplateModeStrict, addonsv1alpha1.ValuesTemplateModeLenient)
		},
		func(spec *addonsv1alpha1.AddonStackSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.ReleaseName += "x" // required
		},
		func(location *addonsv1alpha1.ChartLocation, c randfill.Continue) {
			c.FillNoCustom(location)
			if c.Bool() {
				*location = addonsv1alpha1.ChartLocation{ChartFrom: &addonsv1alpha1.ChartSource{Path: c.String(0) + "x"}}
				return
			}
			location.ChartFrom = nil
			location.RepoURL = pick(c, "oci://registry.example.org/charts", "oci://host:5000/", "https://charts.example.org", "https://charts.example.org/stable/")
			location.ChartName = pick(c, "cilium", "metrics-server")
		},
	}
}

// canonicalFuncs makes v1alpha1 objects as they are read back.
func canonicalFuncs(codecs runtimeserializer.CodecFactory) []any {
	fillLocation := spokeFuncs(codecs)[2].(func(*addonsv1alpha1.ChartLocation, randfill.Continue))
	return []any{
		func(mode *addonsv1alpha1.ValuesTemplateMode, c randfill.Continue) {
			*mode = pick(c, "", addonsv1alpha1.ValuesTemplateModeStrict)
		},
		func(timeout *metav1.Duration, c randfill.Continue) {
			*timeout = *timeoutToSpoke(new(c.Int31()))
		},
		func(location *addonsv1alpha1.ChartLocation, c randfill.Continue) {
			fillLocation(location, c)
			if strings.HasPrefix(location.RepoURL, ociScheme) {
				location.RepoURL = strings.TrimRight(location.RepoURL, "/")
			}
		},
	}
}

func pick[T any](c randfill.Continue, choices ...T) T { return choices[c.Intn(len(choices))] }

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, addonsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func toHub(ctx context.Context, t *testing.T, spoke *addonsv1alpha1.AddonStack) *addonsv1.AddonStack {
	t.Helper()
	hub := &addonsv1.AddonStack{}
	if err := ConvertAddonStackV1Alpha1ToHub(ctx, spoke, hub); err != nil {
		t.Fatal(err)
	}
	return hub
}

func toSpoke(ctx context.Context, t *testing.T, hub *addonsv1.AddonStack) *addonsv1alpha1.AddonStack {
	t.Helper()
	spoke := &addonsv1alpha1.AddonStack{}
	if err := ConvertAddonStackHubToV1Alpha1(ctx, hub, spoke); err != nil {
		t.Fatal(err)
	}
	return spoke
}
