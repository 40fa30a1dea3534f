// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

var update = flag.Bool("update", false, "write golden files")

// buildPlugin builds kubectl-chandler once for all tests.
var buildPlugin = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(world.dir, "kubectl-chandler")
	return binary, gobuild.Build(context.Background(), world.root, binary, "./cmd/kubectl-chandler")
})

// plugin is kubectl chandler as a user of the management cluster.
type plugin struct {
	*tenant
	binary, kubeconfig string
	user               string
}

// newPlugin returns the command as a user with these rights in the tenant's namespace, and to see Chandler's objects there.
func (tn *tenant) newPlugin(rules ...rbacv1.PolicyRule) *plugin {
	tn.t.Helper()
	return tn.newPluginAs("people", rules...)
}

// newPluginAs does so as a user of another name.
func (tn *tenant) newPluginAs(name string, rules ...rbacv1.PolicyRule) *plugin {
	tn.t.Helper()
	binary, err := buildPlugin()
	must.Succeed(tn.t, err)
	p := &plugin{tenant: tn, binary: binary, user: name + ":" + tn.namespace}
	known, err := world.hub.AddUser(p.user)
	must.Succeed(tn.t, err)
	p.kubeconfig = filepath.Join(tn.t.TempDir(), "kubeconfig")
	config, err := clientcmd.Load(known.Kubeconfig)
	must.Succeed(tn.t, err)
	config.Contexts[config.CurrentContext].Namespace = tn.namespace
	must.Succeed(tn.t, clientcmd.WriteToFile(*config, p.kubeconfig))
	see := []string{"get", "list", "watch"}
	world.hub.grant(tn.t, tn.namespace, name, user(p.user), append(rules,
		rbacv1.PolicyRule{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"addonplans", "addonstacks", "clusteraddons", "providerinstances"}, Verbs: see},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: see},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: see})...)
	return p
}

// run returns the output and the exit code of a command line.
func (p *plugin) run(args ...string) (string, int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// does expects a command to succeed, and returns what it writes.
func (p *plugin) does(args ...string) string {
	p.t.Helper()
	out, code := p.run(args...)
	if code != 0 {
		p.t.Fatalf("%v: exit code %d: %s", args, code, out)
	}
	return out
}

// follows starts a command that continues until the end of the test, and returns what it has written so far.
func (p *plugin) follows(args ...string) func() string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "output")
	out, err := os.Create(file)
	must.Succeed(p.t, err)
	cmd := exec.CommandContext(p.t.Context(), p.binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "KUBECONFIG="+p.kubeconfig), out, out
	must.Succeed(p.t, cmd.Start())
	p.t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended
	return func() string {
		data, err := os.ReadFile(file)
		must.Succeed(p.t, err)
		return string(data)
	}
}

// Of each run, these are others.
var (
	ages      = regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?s\b|\b\d+m\b`)
	revisions = regexp.MustCompile(`-[0-9a-f]{10}\b`)
	ports     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	objects   = regexp.MustCompile(`\d+ of \d+ objects`) // a namespace is there or not
	gaps      = regexp.MustCompile(`(\S) {2,}`)
)

// golden compares the output of a command line, and its exit code, with a file.
func (p *plugin) golden(name string, args ...string) {
	p.t.Helper()
	out, code := p.run(args...)
	out = strings.ReplaceAll(out, p.namespace, "NAMESPACE")
	out = ages.ReplaceAllString(out, "AGE")
	out = revisions.ReplaceAllString(out, "-REVISION")
	out = ports.ReplaceAllString(out, "127.0.0.1:PORT")
	out = objects.ReplaceAllString(out, "N of N objects")
	out = gaps.ReplaceAllString(out, "$1  ")
	is := fmt.Sprintf("$ kubectl chandler %s\n%sexit %d\n", strings.Join(args, " "), out, code)
	file := filepath.Join("testdata", "kubectl-chandler", name+".txt")
	if *update {
		must.Succeed(p.t, os.WriteFile(file, []byte(is), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must.Succeed(p.t, err)
	p.Expect(is).To(Equal(string(want)), "run with -update to write %s", file)
}

// fleetOf200 has 200 clusters: 190 for stack platform, of which three fail, one is paused and one can't be reached, and
// ten for stack edge.
func fleetOf200(t *testing.T) *tenant {
	t.Helper()
	tn := newTenant(t)
	authority := virtualcluster.NewAuthority(t)
	user, err := workloadServer(t, 3).AddUser(tn.clusterUser("all"), "system:masters")
	must.Succeed(t, err)
	for i := range 200 {
		name, has := fmt.Sprintf("prod-%03d", i), labels("env=prod")
		switch {
		case i >= 190:
			has = labels("env=edge")
		case i == 17, i == 18:
			has["bad"] = "refused"
		case i == 104:
			has["broken"] = "template"
		}
		if i == 33 {
			p := tn.startProxy(name, workloadServer(t, 3))
			p.refuse()
		} else {
			tn.writeKubeconfig(name, authority.New(t, user, name).Kubeconfig)
		}
		tn.makeClusterObject(name, has)
	}
	tn.startManager()
	path := tn.writeChart("settings", "1.0.0", rollingChart)
	base := tn.addon("base", path, withTemplate("text: {{ if hasKey .Cluster.metadata.labels \"broken\" }}{{ .Cluster.spec.nowhere }}{{ end }}one\n"))
	ingress := tn.addon("ingress", path, after("base"), withTemplate(valuesFor("one", "bad")))
	ingress.Namespace, base.Namespace = "default", "default"
	tn.makeStack("platform", labels("env=prod"), base, ingress)
	edge := tn.addon("agent", path, withValues(map[string]any{"text": "one"}))
	edge.Namespace = "default"
	tn.makeStack("edge", labels("env=edge"), edge)
	tn.awaitReady("edge", "the edge is well")
	tn.awaitStack("platform", "three fail", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersFailedReason, "3 of 190 clusters failed")
	tn.awaitCluster("prod-150", "it is ready, and then paused", ready("base", "ingress"))
	tn.pauseCluster("prod-150", true)
	poll(t, patience, "all others are ready", func() error {
		s := tn.newStack("platform", nil)
		if err := world.hub.Get(t.Context(), tn.key("platform"), s); err != nil {
			return err
		}
		if want := (addonsv1.ClusterCounts{Total: 190, Ready: 185, Failed: 3, Waiting: 2}); *s.Status.Clusters != want {
			return fmt.Errorf("%+v", *s.Status.Clusters)
		}
		return nil
	})
	tn.settle()
	return tn
}

// TestFleetSeenWithKubectl compares what people see of 200 clusters with files, and counts the requests for it.
func TestFleetSeenWithKubectl(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := fleetOf200(t)
	p := tn.newPlugin()
	begin := world.hub.mark(t)
	p.golden("status", "status")
	requests := described(begin.requests(t, p.user), func(auditEvent) bool { return true })
	read := map[string]int{}
	for _, request := range requests {
		resource := request[strings.LastIndex(request, "/")+1 : strings.Index(request, "?")]
		tn.Expect(request).To(HavePrefix("list "), "a look changes nothing, and asks for no discovery")
		if !strings.Contains(request, "continue=") {
			read[resource]++
		}
	}
	tn.Expect(read).To(Equal(map[string]int{"providerinstances": 1, "addonstacks": 1, "clusteraddons": 1}), "each kind is read once: %v", requests)
	tn.Expect(len(requests)).To(BeNumerically("<=", 4), "in pages: %v", requests)

	p.golden("status-wide", "status", "-o", "wide", "-l", "nothing=here")
	p.golden("why-cluster", "why", "prod-017")
	p.golden("why-template", "why", "cluster/prod-104")
	p.golden("why-unreachable", "why", "prod-033")
	p.golden("why-well", "why", "prod-000")
	p.golden("why-stack", "why", "platform")
	p.golden("why-addon", "why", "addon/ingress")
	p.golden("why-nothing", "why", "nobody")
	p.golden("tree", "tree", "platform")
	p.golden("history", "history", "platform")
	is := struct {
		Kind   string
		Addons []addonsv1.AddonStatus
	}{}
	for _, format := range []string{"json", "yaml"} { // JSON is YAML
		tn.Expect(yaml.Unmarshal([]byte(p.does("why", "prod-000", "-o", format)), &is)).To(Succeed())
		tn.Expect(is.Kind).To(Equal("Cluster"))
		tn.Expect(is.Addons).To(HaveLen(2))
	}
	names := strings.Fields(p.does("__complete", "why", "")) // as shells ask
	tn.Expect(slices.Contains(names, "platform") && slices.Contains(names, "prod-199")).To(BeTrue())
}
