// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/kustomization"
)

// inCheckout lets the test run where a user would.
func inCheckout(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

func TestRun(t *testing.T) {
	inCheckout(t)
	for name, tc := range map[string]struct {
		args     []string
		types    string // what the user types; a terminal, if there is anything
		instance string
		// The scope, as the manager is told.
		namespaces, filter string
		// rights are the namespaces with a Role; none if they are cluster-wide.
		rights []string
	}{
		"one namespace":      {args: []string{"--name=red", "--namespaces=team-a"}, instance: "red", namespaces: "team-a", rights: []string{"team-a"}},
		"several namespaces": {args: []string{"--name=red", "--namespaces=team-a, team-b"}, instance: "red", namespaces: "team-a,team-b", rights: []string{"team-a", "team-b"}},
		"by filter":          {args: []string{"--name=red", "--namespaces=team-a", "--filter=Blue_1.x"}, instance: "red", namespaces: "team-a", filter: "Blue_1.x", rights: []string{"team-a"}},
		"all by filter":      {args: []string{"--name=red", "--namespaces=*", "--filter=blue"}, instance: "red", filter: "blue"},
		"all":                {args: []string{"--name=red", "--namespaces=*"}, instance: "red"},
		"its own namespace":  {args: []string{"--name=red", "--namespaces=chandler-red"}, instance: "red", namespaces: "chandler-red", rights: []string{"chandler-red"}},
		"names like numbers": {args: []string{"--name=1", "--namespaces=2,3", "--filter=4"}, instance: "1", namespaces: "2,3", filter: "4", rights: []string{"2", "3"}},
		"names like words":   {args: []string{"--name=true", "--namespaces=null,manager", "--filter=no"}, instance: "true", namespaces: "null,manager", filter: "no", rights: []string{"null", "manager"}},
		"the longest name":   {args: []string{"--name=" + strings.Repeat("n", 54), "--namespaces=" + strings.Repeat("a", 63)}, instance: strings.Repeat("n", 54), namespaces: strings.Repeat("a", 63), rights: []string{strings.Repeat("a", 63)}},
		"all asked for":      {types: "red\nteam-a , team-b\nblue\n", instance: "red", namespaces: "team-a,team-b", filter: "blue", rights: []string{"team-a", "team-b"}},
		"the rest asked for": {args: []string{"--name=red"}, types: "*\n\n", instance: "red"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := filepath.Join(t.TempDir(), "new", "overlay")
			said := &bytes.Buffer{}
			err := run(append(tc.args, "--out="+folder), console{in: bufio.NewReader(strings.NewReader(tc.types)), out: said, terminal: tc.types != ""})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said.String()).To(ContainSubstring("kustomize build " + folder + " | kubectl apply -f -"))
			objects, err := kustomization.Build(folder)
			g.Expect(err).NotTo(HaveOccurred())

			namespaces, err := kustomization.Find[corev1.Namespace](objects, "Namespace")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(namespaces).To(ConsistOf(HaveField("Name", "chandler-"+tc.instance)))
			deployments, err := kustomization.Find[appsv1.Deployment](objects, "Deployment")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(deployments).To(ConsistOf(HaveField("Namespace", "chandler-"+tc.instance)))
			args, err := kustomization.Args(&deployments[0])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(args).To(ContainElements("--run=controllers", "--instance-name="+tc.instance, "--namespace="+tc.namespaces, "--watch-filter="+tc.filter))

			g.Expect(boundIn(g, objects)).To(ConsistOf(tc.rights))
			everywhere := tc.rights == nil
			wide, err := kustomization.Find[rbacv1.ClusterRoleBinding](objects, "ClusterRoleBinding")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(wide).To(HaveLen(1+map[bool]int{true: 1}[everywhere]), "metrics, and the rights if they are for all namespaces")
			entries, err := os.ReadDir(filepath.Dir(folder))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entries).To(HaveLen(1), "the draft is gone")
		})
	}
}

func TestRunRefuses(t *testing.T) {
	inCheckout(t)
	good := []string{"--name=red", "--namespaces=team-a"}
	for name, tc := range map[string]struct {
		args  []string
		types string
		says  string
	}{
		"no name":                        {args: []string{"--namespaces=team-a"}, says: "--name is missing"},
		"no namespaces":                  {args: []string{"--name=red"}, says: "--namespaces is missing"},
		"an empty name":                  {types: "\n*\n\n", says: "--name: "},
		"an end of input":                {args: []string{"--name=red"}, types: "*", says: "reading an answer: EOF"},
		"an empty list":                  {args: []string{"--name=red", "--namespaces= "}, says: "--namespaces: name one"},
		"a name in upper case":           {args: []string{"--name=Red", "--namespaces=team-a"}, says: `--name: "Red"`},
		"a name with a path":             {args: []string{"--name=../red", "--namespaces=team-a"}, says: `--name: "../red"`},
		"a name that begins with a dash": {args: []string{"--name=-red", "--namespaces=team-a"}, says: `--name: "-red"`},
		"a name of two lines":            {args: []string{"--name=red\nblue", "--namespaces=team-a"}, says: `--name: "red\nblue"`},
		"a name too long":                {args: []string{"--name=" + strings.Repeat("n", 55), "--namespaces=team-a"}, says: "54 at most"},
		"a namespace with a path":        {args: []string{"--name=red", "--namespaces=../team"}, says: `--namespaces: "../team"`},
		"an empty namespace":             {args: []string{"--name=red", "--namespaces=team-a,,team-b"}, says: `--namespaces: ""`},
		"a namespace twice":              {args: []string{"--name=red", "--namespaces=team-a,team-a"}, says: `"team-a" is there twice`},
		"all and one":                    {args: []string{"--name=red", "--namespaces=*,team-a"}, says: "* is all namespaces"},
		"too many namespaces":            {args: []string{"--name=red", "--namespaces=" + strings.Repeat("a,", 256) + "a"}, says: "257 are too many"},
		"a filter that is no label":      {args: append(good, "--filter=a b"), says: `--filter: "a b"`},
		"the filter of all":              {args: append(good, "--filter=shared"), says: `--filter: "shared"`},
		"a wrong flag":                   {args: append(good, "--names=x"), says: "unknown flag"},
		"an argument":                    {args: append(good, "blue"), says: `unexpected argument "blue"`},
		"a wrong base":                   {args: append(good, "--base=docs"), says: "--base: docs isn't"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := filepath.Join(t.TempDir(), "overlay")
			err := run(append(tc.args, "--out="+folder), console{in: bufio.NewReader(strings.NewReader(tc.types)), out: &bytes.Buffer{}, terminal: tc.types != ""})
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "one line")
			g.Expect(folder).NotTo(BeADirectory(), "nothing is written")
		})
	}
}

func TestOverwritesOnlyWithForce(t *testing.T) {
	inCheckout(t)
	g := NewWithT(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "kustomization.yaml")
	own := filepath.Join(folder, "own.yaml")
	for _, path := range []string{file, own} {
		g.Expect(os.WriteFile(path, []byte("mine"), 0o600)).To(Succeed())
	}
	args := []string{"--name=red", "--namespaces=team-a", "--out=" + folder}
	g.Expect(run(args, console{out: &bytes.Buffer{}})).To(MatchError(ContainSubstring("--force writes over it")))
	g.Expect(os.ReadFile(file)).To(Equal([]byte("mine")))
	g.Expect(run(append(args, "--force"), console{out: &bytes.Buffer{}})).To(Succeed())
	g.Expect(os.ReadFile(file)).To(ContainSubstring("team-a"))
	g.Expect(os.ReadFile(own)).To(Equal([]byte("mine")), "what isn't the overlay's stays")
}

// An overlay in a repository of its own refers to a release.
func TestRemoteBase(t *testing.T) {
	inCheckout(t)
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "overlay")
	base := "github.com/cluster-chandler/chandler//config/instance?ref=v0.1.0"
	g.Expect(run([]string{"--name=red", "--namespaces=team-a", "--out=" + folder, "--base=" + base}, console{out: &bytes.Buffer{}})).To(Succeed())
	for file, want := range map[string]string{
		"kustomization.yaml":                   "components: [github.com/cluster-chandler/chandler//config/instance/subjects?ref=v0.1.0]",
		"manager/kustomization.yaml":           "resources: [github.com/cluster-chandler/chandler//config/instance/manager?ref=v0.1.0]",
		"namespaces/team-a/kustomization.yaml": "resources: [github.com/cluster-chandler/chandler//config/instance/rights?ref=v0.1.0]",
	} {
		g.Expect(os.ReadFile(filepath.Join(folder, file))).To(ContainSubstring(want))
	}
}

// The samples are what this command writes.
func TestSamples(t *testing.T) {
	inCheckout(t)
	for sample, a := range map[string]answers{
		"by-namespace":       {Name: "red", Namespaces: []string{"team-a"}},
		"by-filter":          {Name: "blue", Namespaces: []string{"team-b"}, Filter: "blue"},
		"several-namespaces": {Name: "green", Namespaces: []string{"team-c", "team-d"}},
		"everywhere":         {Name: "violet", Namespaces: []string{everywhere}, Filter: "violet"},
	} {
		g := NewWithT(t)
		folder := filepath.Join("config/samples/instances", sample)
		got := map[string]string{}
		g.Expect(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			got[strings.TrimPrefix(path, folder+"/")] = string(data)
			return err
		})).To(Succeed())
		g.Expect(got).To(Equal(a.overlay("../../../instance")), sample)
		g.Expect(strings.Count(got["kustomization.yaml"], "\n")).To(BeNumerically("<=", 15), "an overlay is short")
	}
}

// Instances that split one namespace by filter have objects in it side by side.
func TestInstancesOfOneNamespace(t *testing.T) {
	inCheckout(t)
	g := NewWithT(t)
	seen := map[string]string{}
	for _, name := range []string{"red", "blue"} {
		for _, namespaces := range []string{"team-a", "team-a,team-b", "*"} {
			folder := filepath.Join(t.TempDir(), name)
			g.Expect(run([]string{"--name=" + name, "--namespaces=" + namespaces, "--filter=" + name, "--out=" + folder}, console{out: &bytes.Buffer{}})).To(Succeed())
			objects, err := kustomization.Build(folder)
			g.Expect(err).NotTo(HaveOccurred())
			for _, o := range objects {
				key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
				g.Expect(seen).To(Or(Not(HaveKey(key)), HaveKeyWithValue(key, name)), "%s of %s", key, name)
				seen[key] = name
			}
		}
	}
}

// boundIn returns the namespaces in which the controllers may work.
func boundIn(g *WithT, objects []*unstructured.Unstructured) []string {
	bindings, err := kustomization.Find[rbacv1.RoleBinding](objects, "RoleBinding")
	g.Expect(err).NotTo(HaveOccurred())
	var namespaces []string
	for _, binding := range bindings {
		if strings.HasPrefix(binding.RoleRef.Name, "chandler-manager-role-") {
			namespaces = append(namespaces, binding.Namespace)
		}
	}
	return namespaces
}
