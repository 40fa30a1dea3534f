// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/render/worker"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
)

const samples = root + "/config/samples"

func TestMain(m *testing.M) {
	worker.RunIfAsked()
	os.Exit(m.Run())
}

// TestCharts holds the charts to what Helm's linter asks for, and renders them as Chandler does.
func TestCharts(t *testing.T) {
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	charts, err := filepath.Glob(filepath.Join(samples, "charts", "*"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, chart := range charts {
		t.Run(filepath.Base(chart), func(t *testing.T) {
			g := NewWithT(t)
			linter := lint.RunAll(chart, nil, "demo", lint.WithKubeVersion(&common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}))
			for _, message := range linter.Messages {
				g.Expect(message.Severity).To(BeNumerically("<=", support.InfoSev), message.Error())
			}
			result, err := renderer.Chart(t.Context(), job.Chart{
				Files:   files(t, chart),
				Release: job.Release{Name: "demo", Namespace: "demo", Revision: 1},
				Facts:   job.Facts{KubeVersion: "v1.36.3"},
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.Objects).NotTo(BeEmpty())
			g.Expect(result.Name + "-" + result.Version).To(Equal(filepath.Base(chart)))
			for _, object := range result.Objects {
				g.Expect(object.GetLabels()).To(HaveKeyWithValue("helm.sh/chart", filepath.Base(chart)), object.GetKind())
			}
		})
	}
}

// TestSamples reads every AddonStack of the samples strictly, and renders its charts with its values.
func TestSamples(t *testing.T) {
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	for _, stack := range stacks(t) {
		t.Run(stack.Name, func(t *testing.T) {
			g := NewWithT(t)
			for _, addon := range stack.Spec.Addons {
				g.Expect(buildFiles(t, renderer, &addon)).To(Succeed(), addon.Name)
				chart := chartOf(t, &addon)
				if chart == nil {
					continue
				}
				_, err := renderer.Chart(t.Context(), job.Chart{
					Files:   chart,
					Release: job.Release{Name: addon.Name, Namespace: addon.Namespace, Revision: 1},
					Values:  valuesOf(t, renderer, &addon),
					Facts:   job.Facts{KubeVersion: "v1.36.3"},
					Edits:   job.Edits{Patches: addon.Patches},
				})
				g.Expect(err).NotTo(HaveOccurred(), addon.Name)
			}
		})
	}
}

// chartOf returns the files of an add-on's chart: one of the samples, or one as published, if that is among the real data.
func chartOf(t *testing.T, addon *addonsv1.Addon) []artifact.File {
	t.Helper()
	name := addon.Name
	switch {
	case addon.Chart.Path != "":
		return files(t, filepath.Join(samples, "charts", addon.Chart.Path))
	case addon.Chart.Helm != nil:
		name = addon.Chart.Helm.Chart
	case addon.Chart.OCI == nil:
		return nil
	}
	archive := realdata.Lookup(t, "charts", name+"-"+addon.Chart.Version+".tgz")
	if archive == "" {
		return nil
	}
	data, err := os.ReadFile(archive)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	content, err := artifact.Content{Archive: data}.Unpack(artifact.Limits{}.WithDefaults())
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), archive)
	return content
}

// stacks are the AddonStacks of all samples, each in the newest version of the API.
func stacks(t *testing.T) []addonsv1.AddonStack {
	t.Helper()
	g := NewWithT(t)
	var stacks []addonsv1.AddonStack
	var plans []addonsv1.AddonPlan
	for _, o := range build(t, samples) {
		one := []*unstructured.Unstructured{o}
		if o.GroupVersionKind().GroupVersion() != addonsv1alpha1.GroupVersion {
			stacks = append(stacks, find[addonsv1.AddonStack](t, one, "AddonStack")...)
			plans = append(plans, find[addonsv1.AddonPlan](t, one, "AddonPlan")...)
			continue
		}
		for _, old := range find[addonsv1alpha1.AddonStack](t, one, "AddonStack") {
			stack := addonsv1.AddonStack{}
			g.Expect(conversion.ConvertAddonStackV1Alpha1ToHub(t.Context(), &old, &stack)).To(Succeed(), old.Name)
			stacks = append(stacks, stack)
		}
	}
	written, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(stacks)+len(plans)).To(Equal(len(written)-1), "one in each file but kustomization.yaml")
	return stacks
}

// buildFiles makes the objects of a kustomization or of manifests.
func buildFiles(t *testing.T, renderer *render.Renderer, addon *addonsv1.Addon) error {
	t.Helper()
	req := job.Files{Release: job.Release{Name: addon.Name, Namespace: addon.Namespace}, Edits: job.Edits{Patches: addon.Patches}}
	switch {
	case addon.Kustomization != nil && addon.Kustomization.Path != "": // others are elsewhere
		req.Files, req.Directory = files(t, filepath.Join(samples, "kustomizations", addon.Kustomization.Path)), addon.Kustomization.Directory
		req.Kustomization = true
	case addon.Manifests != nil:
		req.Files, req.Directory = files(t, filepath.Join(samples, "kustomizations", addon.Manifests.Path)), addon.Manifests.Directory
	default:
		return nil
	}
	_, err := renderer.Files(t.Context(), req)
	return err
}

// demoCluster is a Cluster such as the demo's, as templates have it.
var demoCluster = map[string]any{"Cluster": map[string]any{"metadata": map[string]any{
	"name": "bergen", "namespace": "default", "labels": map[string]any{"region": "north"},
}}}

// valuesOf returns the values of an add-on on the demo's Cluster.
func valuesOf(t *testing.T, renderer *render.Renderer, addon *addonsv1.Addon) map[string]any {
	t.Helper()
	g := NewWithT(t)
	from, plain, templated := valuesFrom(t, renderer, addon), map[string]any{}, map[string]any{}
	if addon.Values != nil {
		g.Expect(json.Unmarshal(addon.Values.Raw, &plain)).To(Succeed())
	}
	if addon.ValuesTemplate != "" {
		text, err := renderer.Template(t.Context(), job.Template{
			Name: addon.Name, Text: addon.ValuesTemplate, Strict: addon.ValuesTemplateMode != addonsv1.ValuesTemplateModeLenient,
			Data: demoCluster,
		})
		g.Expect(err).NotTo(HaveOccurred(), addon.Name)
		templated, err = renderer.Values(t.Context(), job.Values{Text: []byte(text)})
		g.Expect(err).NotTo(HaveOccurred(), text)
	}
	return values.Merge(from, plain, templated)
}

// valuesFrom returns what the samples' own Secrets give an add-on.
func valuesFrom(t *testing.T, renderer *render.Renderer, addon *addonsv1.Addon) map[string]any {
	t.Helper()
	g := NewWithT(t)
	var templates []string
	for _, ref := range addon.ValuesFrom {
		templates = append(templates, ref.Name)
	}
	names, err := renderer.Names(t.Context(), job.Names{Field: addon.Name, Templates: templates, Data: demoCluster})
	g.Expect(err).NotTo(HaveOccurred(), addon.Name)
	secrets, merged := find[corev1.Secret](t, build(t, samples), "Secret"), map[string]any{}
	for i, ref := range addon.ValuesFrom {
		at := slices.IndexFunc(secrets, func(s corev1.Secret) bool { return ref.Kind == "Secret" && s.Name == names[i] })
		if at < 0 {
			g.Expect(ref.Optional).To(HaveValue(BeTrue()), names[i])
			continue
		}
		layer, err := renderer.Values(t.Context(), job.Values{Text: []byte(secrets[at].StringData[cmp.Or(ref.Key, addonsv1.DefaultValuesKey)])})
		g.Expect(err).NotTo(HaveOccurred(), names[i])
		g.Expect(layer).NotTo(BeEmpty(), names[i])
		merged = values.Merge(merged, layer)
	}
	return merged
}

func files(t *testing.T, chart string) []artifact.File {
	t.Helper()
	var all []artifact.File
	err := fs.WalkDir(os.DirFS(chart), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(chart, name))
		all = append(all, artifact.File{Name: name, Data: data})
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return all
}

// hostThatIsNot matches the hosts of examples.
var hostThatIsNot = regexp.MustCompile(`[a-z0-9.-]+\.example\.(org|com)`)

// TestHostsOfSamples wants the first comment of a sample to name what to change, if it names a host that nobody has.
func TestHostsOfSamples(t *testing.T) {
	written, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	if err != nil || len(written) < 10 {
		t.Fatal(written, err)
	}
	for _, file := range written {
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		_, text, _ := strings.Cut(string(data), "\n\n") // behind the licence
		if first, _, _ := strings.Cut(text, "\n"); hostThatIsNot.MatchString(text) && !strings.HasPrefix(first, "# Change ") {
			t.Errorf("%s names %s; its first comment is to say what to change", file, hostThatIsNot.FindString(text))
		}
	}
}
