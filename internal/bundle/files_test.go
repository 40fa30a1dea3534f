// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
)

// fake is a bundle with these files; those in archives by their whole path.
type fake map[string]string

func (f fake) Names() []string {
	names := map[string]bool{}
	for name := range f {
		if archive, _, within := strings.Cut(name, ".tgz/"); within {
			name = archive + ".tgz"
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (f fake) Read(name string) ([]byte, bool, error) {
	text, found := f[name]
	return []byte(text), found, nil
}

func (f fake) ReadYAML(name string) ([]byte, bool, error) { return f.Read(name) }

func (f fake) ChartDigest(name string) (string, error) {
	for file := range f {
		if strings.HasPrefix(file, name+"/") || file == name {
			return "digest of " + name, nil
		}
	}
	return "", &failure.Error{Reason: failure.ArtifactNotFound, Field: "chart.path", Subject: name, Err: errors.New("it isn't there")}
}

const (
	metadata = "versions: {clusterStack: v2-beta.7, kubernetes: v1.31.6, components: {clusterAddon: v1}}\n"
	archive  = "docker-scs-1-31-cluster-addon-v1.tgz"
	stages   = `
addonStages:
  AfterControlPlaneInitialized:
  - name: cni
    action: apply
    waitForPostCondition:
      objects: [{key: agents, apiVersion: apps/v1, kind: DaemonSet, name: cilium, namespace: kube-system}]
      conditions: agents.status.numberReady > 0
  - {name: old, action: delete, waitForPreCondition: {conditions: "true"}}
  - {name: metrics, action: apply, retries: 3}
  BeforeClusterUpgrade:
  - {name: preflight, action: apply}
  - {name: cni, action: apply}
  - {name: preflight, action: delete}
  - {name: backup, action: apply}
  AfterControlPlaneUpgrade:
  - {name: metrics, action: apply, waitForPreCondition: {conditions: "true"}}
  AfterClusterUpgrade:
  - {name: metrics, action: apply}
  - {name: cni, action: apply}
  BeforeClusterDelete:
  - {name: cni, action: delete}
  - {name: metrics, action: apply}
  BeforeTeaTime:
  - {name: cni, action: apply}
`
)

func staged() fake {
	return fake{
		"metadata.yaml":                         metadata,
		"clusteraddon.yaml":                     stages,
		"cluster-addon-values.yaml":             "values: 1",
		"docker-scs-1-31-cluster-class-v1.tgz":  "",
		archive + "/cni/Chart.yaml":             "",
		archive + "/cni/overwrite.yaml":         "values: |\n  a: 1\n",
		archive + "/metrics/Chart.yaml":         "",
		archive + "/metrics/overwrite.yaml":     "\n",
		archive + "/preflight/Chart.yaml":       "",
		"docker-scs-1-31-cluster-addon-v10.tgz": "",
	}
}

func source() *addonsv1.AddonStackSpec {
	return &addonsv1.AddonStackSpec{Source: &addonsv1.BundleSource{AdoptionPolicy: addonsv1.AdoptionPolicyAdopt}}
}

func TestReleaseWithStages(t *testing.T) {
	want := &Expansion{
		Addons: []addonsv1.Addon{{
			Name: "preflight", Namespace: "kube-system", CreateNamespace: ptr.To(false), TemplateReleaseName: "cluster-addon",
			Chart:          addonsv1.ChartSource{Path: archive + "/preflight", Digest: "digest of " + archive + "/preflight"},
			AdoptionPolicy: addonsv1.AdoptionPolicyAdopt,
			Lifecycle:      &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade},
		}, {
			Name: "cni", Namespace: "kube-system", CreateNamespace: ptr.To(false), TemplateReleaseName: "cluster-addon",
			Chart:          addonsv1.ChartSource{Path: archive + "/cni", Digest: "digest of " + archive + "/cni"},
			ValuesTemplate: "values: |\n  a: 1\n", ValuesTemplateMode: addonsv1.ValuesTemplateModeClusterStack,
			Postconditions: []addonsv1.ObjectsCondition{{
				Objects:    []addonsv1.ConditionObject{{Key: "agents", APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cilium", Namespace: "kube-system"}},
				Expression: "agents.status.numberReady > 0",
			}},
			DependsOn:      []string{"preflight"},
			AdoptionPolicy: addonsv1.AdoptionPolicyAdopt,
			Lifecycle:      &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeBeforeControlPlane, OnClusterDelete: addonsv1.OnClusterDeleteRemove},
		}, {
			Name: "metrics", Namespace: "kube-system", CreateNamespace: ptr.To(false), TemplateReleaseName: "cluster-addon",
			Chart:          addonsv1.ChartSource{Path: archive + "/metrics", Digest: "digest of " + archive + "/metrics"},
			DependsOn:      []string{"cni"},
			AdoptionPolicy: addonsv1.AdoptionPolicyAdopt,
			Lifecycle:      &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeAfterControlPlane},
		}},
		Notes: []string{
			"Cluster Stack release docker-scs-1-31-v2-beta-7 for Kubernetes v1.31.6",
			"removed if installed: old",
			"conditions of stages that delete, which aren't waited for: old",
			"not run: stages of BeforeClusterUpgrade: backup",
			"conditions of stages of AfterControlPlaneUpgrade, which aren't waited for: metrics",
			"in the order of AfterControlPlaneInitialized, not in that of AfterClusterUpgrade: cni",
			"not run: stages of BeforeClusterDelete: metrics",
			"not run: stages of BeforeTeaTime: cni",
			"not used: cluster-addon-values.yaml, which is for releases without clusteraddon.yaml",
			"unknown keys in clusteraddon.yaml: addonStages.AfterControlPlaneInitialized.retries",
		},
	}
	got, err := Expand(staged(), source())
	must.Succeed(t, err)
	must.Equal(t, want, got)

	inDirectory := fake{}
	for name, text := range staged() {
		inDirectory["docker-scs-1-31-v2/"+name] = text
	}
	got, err = Expand(inDirectory, source())
	if err != nil || got.Addons[2].Chart.Path != "docker-scs-1-31-v2/"+archive+"/metrics" {
		t.Errorf("in a directory of the bundle: %+v, %v", got, err)
	}
}

func TestReleaseWithOneChart(t *testing.T) {
	files := staged()
	delete(files, "clusteraddon.yaml")
	files[archive] = ""
	got, err := Expand(files, source())
	want := []addonsv1.Addon{{
		Name: "cluster-addon", Namespace: "kube-system", CreateNamespace: ptr.To(false),
		Chart:          addonsv1.ChartSource{Path: archive, Digest: "digest of " + archive},
		ValuesTemplate: "values: 1", ValuesTemplateMode: addonsv1.ValuesTemplateModeClusterStack,
		AdoptionPolicy: addonsv1.AdoptionPolicyAdopt,
	}}
	must.Succeed(t, err)
	must.Equal(t, want, got.Addons)
}

func TestTheLastStageOfAChartCounts(t *testing.T) {
	files := staged()
	files["clusteraddon.yaml"] = `addonStages: {AfterControlPlaneInitialized: [{name: metrics, action: delete}, {name: cni, action: apply}, {name: metrics, action: apply}]}`
	got, err := Expand(files, source())
	if err != nil || len(got.Addons) != 2 || got.Addons[0].Name != "cni" || got.Addons[1].Name != "metrics" {
		t.Fatalf("%+v, %v", got, err)
	}
	if !slices.Contains(got.Notes, "listed more than once, the last stage counts: metrics") {
		t.Errorf("notes: %q", got.Notes)
	}
}

func TestReleasesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change map[string]string // "-" removes
		says   string
	}{
		"no release":           {map[string]string{"metadata.yaml": "-"}, "no metadata.yaml, so it is no release"},
		"broken metadata":      {map[string]string{"metadata.yaml": "versions: 1"}, "metadata.yaml"},
		"another version":      {map[string]string{"metadata.yaml": strings.Replace(metadata, "clusterAddon: v1", "clusterAddon: v3", 1)}, "-cluster-addon-v3.tgz"},
		"two archives":         {map[string]string{"openstack-scs-1-31-cluster-addon-v1.tgz": ""}, "2 archives"},
		"broken stages":        {map[string]string{"clusteraddon.yaml": "addonStages: {AfterControlPlaneInitialized: [{name: ../x, action: apply}]}"}, "clusteraddon.yaml"},
		"no stage":             {map[string]string{"clusteraddon.yaml": "addonStages: {BeforeClusterUpgrade: []}"}, "has no stages"},
		"a stage of nothing":   {map[string]string{"clusteraddon.yaml": "addonStages: {AfterControlPlaneInitialized: [{name: x, action: apply}]}"}, "clusteraddon.yaml: stage x: " + archive + "/x: it isn't there"},
		"a template too large": {map[string]string{archive + "/cni/overwrite.yaml": strings.Repeat("a", maxTemplate+1)}, "bytes, at most"},
	} {
		files := staged()
		for file, text := range tc.change {
			if files[file] = text; text == "-" {
				delete(files, file)
			}
		}
		if got, err := Expand(files, source()); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, got, err, tc.says)
		}
	}
}

// TestAStageWithoutItsChart is a fault of the release: no source will bring it.
func TestAStageWithoutItsChart(t *testing.T) {
	files := staged()
	files["clusteraddon.yaml"] = "addonStages: {AfterControlPlaneInitialized: [{name: x, action: apply}]}"
	_, err := Expand(files, source())
	if failed, ok := errors.AsType[*failure.Error](err); !ok || failed.Reason != failure.ArtifactInvalid || failed.Field != "" {
		t.Errorf("got %#v, want %s in no field", err, failure.ArtifactInvalid)
	}
}

func TestReleaseThatOnlyDeletes(t *testing.T) {
	files := staged()
	files["clusteraddon.yaml"] = "addonStages: {AfterControlPlaneInitialized: [{name: cni, action: delete}]}"
	got, err := Expand(files, source())
	if err != nil || len(got.Addons) > 0 || !slices.Contains(got.Notes, "removed if installed: cni") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestKeysThatNobodyKnows are told of, with the file that they are in.
func TestKeysThatNobodyKnows(t *testing.T) {
	files := staged()
	files["metadata.yaml"] = metadata + "channel: stable\n"
	files["metadata.yaml"] = strings.Replace(files["metadata.yaml"], "clusterAddon: v1", "clusterAddon: v1, clusterClass: v1", 1)
	for name, staged := range map[string]bool{"with stages": true, "with one chart": false} {
		if !staged {
			delete(files, "clusteraddon.yaml")
			files[archive] = ""
		}
		got, err := Expand(files, source())
		must.Succeed(t, err)
		if want := "unknown keys in metadata.yaml: channel, versions.components.clusterClass"; !slices.Contains(got.Notes, want) {
			t.Errorf("%s: notes %q, want %q among them", name, got.Notes, want)
		}
	}
}

// TestHooksThatNobodyRuns are told of, and refuse nothing.
func TestHooksThatNobodyRuns(t *testing.T) {
	files := staged()
	files["clusteraddon.yaml"] = stages + "  AfterWorkersUpgrade: [{name: Foo_Bar, action: replace}]\n"
	got, err := Expand(files, source())
	if err != nil || len(got.Addons) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !slices.ContainsFunc(got.Notes, func(note string) bool {
		return strings.HasPrefix(note, "not run, and couldn't be: stages of AfterWorkersUpgrade: stage 0: name \"Foo_Bar\"")
	}) {
		t.Errorf("notes: %q", got.Notes)
	}
}

// TestFaultBeforeUpgrades refuses a release whose checks before an upgrade can't be read.
func TestFaultBeforeUpgrades(t *testing.T) {
	for _, hook := range []string{"BeforeClusterUpgrade", "BeforeControlPlaneUpgrade"} {
		files := staged()
		files["clusteraddon.yaml"] = stages + "  " + hook + ": [{name: Foo_Bar, action: replace}]\n"
		if _, err := Expand(files, source()); err == nil || !strings.Contains(err.Error(), hook) {
			t.Errorf("%s: %v", hook, err)
		}
	}
}

// TestArchiveAndTag has the archive of the Cluster Stack that was asked for.
func TestArchiveAndTag(t *testing.T) {
	const other = "other-thing-1-29-cluster-addon-v1.tgz"
	both := staged()
	both[other] = ""
	odd := fake{"metadata.yaml": metadata, "my.docker-scs_x-1-31-cluster-addon-v1.tgz": "", "._my.docker-scs_x-1-31-cluster-addon-v1.tgz": ""}
	for name, tc := range map[string]struct {
		files               fake
		version, stack      string
		archive, note, says string
	}{
		"its tag":               {staged(), "docker-scs-1-31-v2-beta-7", "", archive, "Cluster Stack release docker-scs-1-31-v2-beta-7 for Kubernetes v1.31.6", ""},
		"another version":       {staged(), "docker-scs-1-31-v3", "", archive, "Cluster Stack release docker-scs-1-31-v2-beta-7 for Kubernetes v1.31.6, with the tag docker-scs-1-31-v3", ""},
		"any tag":               {staged(), "v7", "", archive, "", ""},
		"one of two":            {both, "docker-scs-1-31-v2-beta-7", "", archive, "", ""},
		"followed":              {both, "", "other-thing-1-29", other, "", ""},
		"no tag, of two":        {both, "", "", "", "", "2 archives"},
		"odd names":             {odd, "", "", "my.docker-scs_x-1-31-cluster-addon-v1.tgz", "", ""},
		"another stack":         {staged(), "docker-scs-1-32-v2", "", "", "", "no docker-scs-1-32-cluster-addon-v1.tgz, which it has to have by its tag and metadata.yaml, but " + archive},
		"another one, followed": {staged(), "", "other-thing-1-29", "", "", "no other-thing-1-29-cluster-addon-v1.tgz"},
	} {
		spec := source()
		spec.Source.Version, spec.Source.ClusterStack = tc.version, tc.stack
		delete(tc.files, "clusteraddon.yaml")
		if tc.archive != "" {
			tc.files[tc.archive] = ""
		}
		got, err := Expand(tc.files, spec)
		switch {
		case tc.says != "":
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %+v, %v; want an error with %q", name, got, err, tc.says)
			}
		case err != nil || got.Addons[0].Chart.Path != tc.archive || tc.note != "" && got.Notes[0] != tc.note:
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestOwnAddonsArePinned(t *testing.T) {
	spec := source()
	spec.Addons = []addonsv1.Addon{
		{Name: "cni", Chart: addonsv1.ChartSource{Path: archive + "/cni"}},
		{Name: "other", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/other"}, Version: "1.0.0"}},
	}
	got, err := Expand(staged(), spec)
	if err != nil || got.Addons[0].Chart.Digest != "digest of "+archive+"/cni" || got.Addons[1].Chart.Digest != "" {
		t.Errorf("%+v, %v", got, err)
	}
	must.Equal(t, "", spec.Addons[0].Chart.Digest, "the spec itself was changed")
	spec.Addons[0].Chart.Digest = "another"
	if _, err := Expand(staged(), spec); err == nil || !strings.Contains(err.Error(), "addons[cni].chart.digest") {
		t.Errorf("a digest that isn't the chart's: %v", err)
	}
}

// What a release says becomes names of add-ons and paths.
func FuzzExpand(f *testing.F) {
	f.Add(metadata, stages, "values: 1")
	f.Fuzz(func(t *testing.T, metadata, stages, values string) {
		files := staged()
		files["metadata.yaml"], files["clusteraddon.yaml"], files[archive+"/cni/overwrite.yaml"] = metadata, stages, values
		got, err := Expand(files, source())
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, addon := range got.Addons {
			if names[addon.Name] {
				t.Errorf("%s is there twice", addon.Name)
			}
			names[addon.Name] = true
			for _, d := range addon.DependsOn {
				if !names[d] {
					t.Errorf("%s depends on %s, which isn't before it", addon.Name, d)
				}
			}
			if strings.Contains(addon.Chart.Path, "..") || !strings.HasPrefix(addon.Chart.Path, "docker-scs-1-31-cluster-addon-") {
				t.Errorf("%s is at %q", addon.Name, addon.Chart.Path)
			}
		}
	})
}
