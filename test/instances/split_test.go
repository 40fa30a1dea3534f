// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestFromOneToSeveral goes from config/default to several instances by the commands of docs/instances.md.
func TestFromOneToSeveral(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	w, s := newWorld(t, worldOptions{workers: true}), workload(t, 0)
	w.createNamespace("team-a")
	first := w.startDefault()
	stack := stackNamed("team-a", "platform", nil, settings("settings", w.addonNamespace("team-a"), "one"))
	stack.Labels = map[string]string{clusterv1.WatchLabel: addonsv1.SharedWatchFilter}
	w.create(stack)
	must.Succeed(t, w.makeCluster(t.Context(), "team-a", "split", s, map[string]string{clusterv1.WatchLabel: "blue"}))
	w.awaitInstalled(s, "team-a", "settings", "one/none")
	w.awaitClusterReady("team-a", "split")
	mark := s.Audit.Mark(t)

	page, err := docs.Read(shared.root, "docs/instances.md")
	must.Succeed(t, err)
	section, err := page.Section("## From one to several")
	must.Succeed(t, err)
	blocks, err := section.Blocks("console")
	must.Succeed(t, err)
	var blue *instance
	for _, command := range blocks[0].Commands() {
		for _, words := range command.Programs() {
			switch {
			case words[0] == "kubectl" && words[1] == "delete":
				if words[2] == "namespace" { // its pod ends with it
					first.stop()
					w.services.remove(first.name)
				}
				w.kubectl(words[1:]...)
			case words[0] == "kustomize" && words[2] == "config/shared":
				w.installShared(words[2])
			case words[0] == "kustomize" && words[2] == "instances/blue":
				blue = w.startInstance(overlay{name: "blue", namespaces: []string{"team-a"}, filter: "blue"}, heartbeat(1)...)
			}
		}
	}
	blue.awaitReady()
	w.awaitClusterReady("team-a", "split")
	user := w.clusterUser("team-a", "split")
	expectNone(t, mark.Requests(t, func(e *event) bool { return wrote(e) && e.User.Username == user }), "a split changes nothing there")
	w.expectNothingLeft()
}

// startDefault installs config/default, and starts its process.
func (w *world) startDefault() *process {
	w.t.Helper()
	objects := build(w.t, shared.root+"/config/default")
	w.apply(objects)
	w.offerCharts("chandler-system")
	address := manager.FreeAddress(w.t)
	_, port, _ := strings.Cut(address, ":")
	p := w.newPod(deploymentIn(w.t, objects))
	m := p.start(defaultVersion, "--leader-elect-namespace=chandler-system", "--webhook-port="+port, "--hook-port=0", "--instance-heartbeat=1s")
	m.serves = address
	w.services.add(p.name, address)
	wait.Until(w.t, patience, "the first instance is to become ready", m.ready)
	return m
}

// kubectl runs a command, which succeeds.
func (w *world) kubectl(args ...string) {
	w.t.Helper()
	dir, err := controlplane.BinDir(context.WithoutCancel(w.t.Context()), os.Stderr, "kubectl")
	must.Succeed(w.t, err)
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	must.Succeed(w.t, os.WriteFile(kubeconfig, w.Kubeconfig(), 0o600))
	args = append([]string{"--kubeconfig=" + kubeconfig}, args...)
	if out, err := exec.CommandContext(w.t.Context(), filepath.Join(dir, "kubectl"), args...).CombinedOutput(); err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args[1:], " "), err, out)
	}
}

// expectNothingLeft compares what is there with what config/default made and config/shared doesn't have.
func (w *world) expectNothingLeft() {
	w.t.Helper()
	var kept []string
	for _, o := range build(w.t, shared.root+"/config/shared") {
		kept = append(kept, o.GetKind()+" "+o.GetName())
	}
	for _, o := range build(w.t, shared.root+"/config/default") {
		err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
		switch isKept := slices.Contains(kept, o.GetKind()+" "+o.GetName()); {
		case o.GetNamespace() != "" || o.GetKind() == "Namespace": // whose end the controller-manager sees to
		case isKept && err != nil:
			w.t.Errorf("%s %s, which the instances share: %v", o.GetKind(), o.GetName(), err)
		case !isKept && !apierrors.IsNotFound(err):
			w.t.Errorf("%s %s is left over: %v", o.GetKind(), o.GetName(), err)
		}
	}
	bound := &rbacv1.ClusterRoleBinding{}
	must.Succeed(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: "chandler-webhooks"}, bound))
	if bound.Subjects[0].Namespace != "chandler-webhooks" {
		w.t.Errorf("the rights of the webhooks are those of %v", bound.Subjects)
	}
}
