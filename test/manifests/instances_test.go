// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
)

const root = "../.."

// shown are the files that docs/instances.md shows.
func shown(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	page, err := docs.Read(root, "docs/instances.md")
	g.Expect(err).NotTo(HaveOccurred())
	section, err := page.Section("## Make an instance")
	g.Expect(err).NotTo(HaveOccurred())
	blocks, err := section.Blocks("yaml")
	g.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for _, block := range blocks {
		first, _, _ := strings.Cut(block.Text, "\n")
		name, ok := strings.CutPrefix(first, "# instances/")
		g.Expect(ok).To(BeTrue(), "%s is to begin with the file's name", block.Where)
		files["instances/"+name] = block.Text
	}
	return files
}

// documented writes these files, and returns the folder that they are in.
func documented(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, kustomization.WriteFiles(root, dir, shown(t)))
	return dir
}

// The overlays that docs/instances.md shows are those that other tests write, and all of them are tested here.
func TestDocumented(t *testing.T) {
	g := NewWithT(t)
	folders, err := filepath.Glob(filepath.Join(documented(t), "instances", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(folders).To(HaveLen(len(instances)-1), "all but config/instance")
	for path, filter := range map[string]string{"instances/red": "", "instances/blue": "blue", "instances/green": "", "instances/violet": "violet"} {
		instance := kustomization.Instance{Name: filepath.Base(path), Namespaces: instances[path], Filter: filter}
		g.Expect(build(t, path)).To(Equal(buildInstance(t, instance)), path)
	}
}

func buildInstance(t *testing.T, instance kustomization.Instance) []*unstructured.Unstructured {
	t.Helper()
	folder, err := instance.Write(root, t.TempDir())
	must.Succeed(t, err)
	return build(t, folder)
}

// An instance has nothing but its own: what is global is shared, and the ConfigMap of its overlay isn't installed.
func TestObjectsOfInstances(t *testing.T) {
	for _, instance := range []kustomization.Instance{
		{Name: "red", Namespaces: []string{"team-a"}},
		{Name: "red", Namespaces: []string{"team-a", "team-b"}, Filter: "Blue_1.x"},
		{Name: "red"},
		{Name: "red", Namespaces: []string{"chandler-red"}},
		{Name: "in-parts", Namespaces: []string{"system"}},
		{Name: "in-parts", Namespaces: []string{"system", "manager"}},
		{Name: "1", Namespaces: []string{"2", "3"}, Filter: "4"},
		{Name: "true", Namespaces: []string{"null", "on"}, Filter: "no"},
		{Name: strings.Repeat("n", 54), Namespaces: []string{strings.Repeat("a", 63)}},
	} {
		t.Run(instance.Name+" "+strings.Join(instance.Namespaces, ","), func(t *testing.T) {
			g := NewWithT(t)
			objects := buildInstance(t, instance)
			own := "chandler-" + instance.Name
			g.Expect(one[corev1.Namespace](t, objects, "Namespace").Name).To(Equal(own))
			deployment := one[appsv1.Deployment](t, objects, "Deployment")
			g.Expect(deployment.Namespace).To(Equal(own))
			g.Expect(deployment.Labels).To(HaveKeyWithValue("app.kubernetes.io/instance", instance.Name))
			args, err := kustomization.Args(&deployment)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(args).To(ContainElements("--run=controllers", "--instance-name="+instance.Name,
				"--namespace="+strings.Join(instance.Namespaces, ","), "--watch-filter="+instance.Filter))
			placed := map[string]bool{}
			var kinds []string
			for _, o := range objects {
				kinds = append(kinds, o.GetKind())
				placed[o.GetNamespace()] = true
				g.Expect(o.GetName()).To(And(HavePrefix("chandler-"), HaveSuffix("-"+instance.Name)), o.GetKind())
			}
			want := map[string]bool{"": true, own: true}
			for _, namespace := range instance.Namespaces {
				want[namespace] = true
			}
			g.Expect(placed).To(Equal(want))
			g.Expect(slices.Compact(slices.Sorted(slices.Values(kinds)))).To(Equal([]string{
				"ClusterRole", "ClusterRoleBinding", "Deployment", "Namespace", "PodDisruptionBudget", "Role", "RoleBinding", "ServiceAccount",
			}))
		})
	}
}

// Instances that split one namespace by filter have objects in it side by side.
func TestInstancesOfOneNamespace(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]string{}
	for _, name := range []string{"red", "blue"} {
		for _, namespaces := range [][]string{{"team-a"}, {"team-a", "team-b"}, nil} {
			for _, o := range buildInstance(t, kustomization.Instance{Name: name, Namespaces: namespaces, Filter: name}) {
				g.Expect(seen).To(Or(Not(HaveKey(identity(o))), HaveKeyWithValue(identity(o), name)), "%s of %s", identity(o), name)
				seen[identity(o)] = name
			}
		}
	}
}

// A value that is forgotten, and a namespace that is there twice, fail the build.
func TestWrongOverlays(t *testing.T) {
	for name, tc := range map[string]struct{ folder, old, changed, says string }{
		"no name":           {"red", "NAME=red, ", "", "data.NAME"},
		"no namespaces":     {"red", "NAMESPACES=team-a, ", "", "data.NAMESPACES"},
		"no filter":         {"red", ", WATCH_FILTER=", "", "data.WATCH_FILTER"},
		"no values":         {"red", "- name: instance", "- name: other", "instance"},
		"a namespace twice": {"green/team-d", "namespace: team-d", "namespace: team-c", "already registered id"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			files := shown(t)
			file := "instances/" + tc.folder + "/kustomization.yaml"
			g.Expect(files[file]).To(ContainSubstring(tc.old))
			files[file] = strings.Replace(files[file], tc.old, tc.changed, 1)
			dir := t.TempDir()
			g.Expect(kustomization.WriteFiles(root, dir, files)).To(Succeed())
			instance, _, _ := strings.Cut(tc.folder, "/")
			_, err := kustomization.Build(filepath.Join(dir, "instances", instance))
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

// What else there is in an overlay keeps its name and its namespace, and the Deployment refers to it.
func TestMoreInAnOverlay(t *testing.T) {
	g := NewWithT(t)
	files := shown(t)
	const file = "instances/red/kustomization.yaml"
	files[file] += "secretGenerator: [{name: chandler-credentials, namespace: chandler-red, literals: [a=b]}]\n" +
		"images: [{name: ghcr.io/cluster-chandler/chandler, newName: registry.example.org/chandler, newTag: v1}]\n"
	dir := t.TempDir()
	g.Expect(kustomization.WriteFiles(root, dir, files)).To(Succeed())
	objects := build(t, filepath.Join(dir, filepath.Dir(file)))
	secret, pod := one[corev1.Secret](t, objects, "Secret"), one[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec
	g.Expect(secret.Name).To(MatchRegexp("^chandler-credentials-[a-z0-9]{10}$"))
	g.Expect(secret.Namespace).To(Equal("chandler-red"))
	g.Expect(pod.Volumes).To(ContainElement(HaveField("VolumeSource.Secret", HaveField("SecretName", secret.Name))))
	g.Expect(pod.Containers[0].Image).To(Equal("registry.example.org/chandler:v1"))
}
