// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestAssigner has the overlay of docs/instances.md label Clusters for two instances, and empty one of them.
func TestAssigner(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	page, err := docs.Read(shared.root, "docs/instances.md")
	must.Succeed(t, err)
	section, err := page.Section("## Have Clusters find an instance")
	must.Succeed(t, err)
	blocks, err := section.Blocks("yaml")
	must.Succeed(t, err)
	files, dir := map[string]string{}, t.TempDir()
	for _, block := range blocks {
		first, _, _ := strings.Cut(block.Text, "\n")
		files[strings.TrimPrefix(first, "# ")] = block.Text
	}
	must.Succeed(t, kustomization.WriteFiles(shared.root, dir, files))

	w := newWorld(t, worldOptions{})
	w.createNamespace("team-a")
	w.createNamespace("team-b")
	objects := build(t, dir+"/shared")
	w.apply(objects)
	deployment := deploymentIn(t, objects)
	w.startWebhooks(deployment, append([]string{"--leader-elect-namespace=chandler-webhooks"}, unhurried...)...)
	for name, namespace := range map[string]string{"c0": "team-a", "c1": "team-a", "c2": "team-a", "c3": "team-a", "other": "team-b"} {
		c := clusterNamed(namespace, name)
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
		w.create(c)
	}
	blue := w.startInstance(overlay{name: "blue", namespaces: []string{"team-a"}, filter: "blue"}, heartbeat(1)...)
	w.awaitLoads(map[string]int{"team-a/blue": 4, "team-b/": 1})
	green := w.startInstance(overlay{name: "green", namespaces: []string{"team-a"}, filter: "green"}, heartbeat(1)...)
	w.awaitLoads(map[string]int{"team-a/blue": 2, "team-a/green": 2, "team-b/": 1})

	blue.last().stop()
	blue.start(append(heartbeat(1), "--drain")...)
	w.awaitLoads(map[string]int{"team-a/green": 4, "team-b/": 1})
	for i := range 4 {
		name := fmt.Sprint("c", i)
		wait.Until(t, patience, "green takes over the ClusterAddon of "+name, func() error { return w.ownedBy("team-a", name, "green") })
	}
	must.Succeed(t, green.last().Running())
	user := serviceaccount.MakeUsername(deployment.Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	expectNone(t, w.Audit.Beginning().Requests(t, both(audit.By(user), audit.Forbidden)), "nothing is asked for that it may not have")

	t.Run("its account may change the watch filter alone", func(t *testing.T) {
		config := rest.CopyConfig(w.Config())
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		assigner, err := client.New(config, client.Options{Scheme: apiserver.Scheme()})
		must.Succeed(t, err)
		for patch, allowed := range map[string]bool{
			`{"metadata":{"labels":{"cluster.x-k8s.io/watch-filter":"green"}}}`:                    true,
			`{"metadata":{"annotations":{"addons.cluster.x-k8s.io/moved-at":null}}}`:               true,
			`{"metadata":{"labels":{"env":"prod"}}}`:                                               false,
			`{"metadata":{"labels":{"cluster.x-k8s.io/watch-filter":"green","team":null}}}`:        false,
			`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`:                          false,
			`{"metadata":{"annotations":{"note":null}}}`:                                           false,
			`{"metadata":{"finalizers":["example.org/mine"]}}`:                                     false,
			`{"spec":{"paused":true}}`:                                                             false,
			`{"spec":{"controlPlaneEndpoint":{"host":"example.org","port":6443}}}`:                 false,
			`{"metadata":{"labels":{"cluster.x-k8s.io/watch-filter":"x"}},"spec":{"paused":true}}`: false,
		} {
			c := clusterNamed("team-a", "c0")
			must.Succeed(t, w.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"a"}}}`))))
			err := assigner.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
			if allowed != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s: %v", patch, err)
			}
		}
	})
}

// awaitLoads waits until so many Clusters have a namespace and a label.
func (w *world) awaitLoads(want map[string]int) {
	w.t.Helper()
	wait.Until(w.t, patience, fmt.Sprintf("Clusters are labelled as %v", want), func() error {
		all, loads := &clusterv1.ClusterList{}, map[string]int{}
		if err := w.List(w.t.Context(), all, client.InNamespace("")); err != nil {
			return err
		}
		for i := range all.Items {
			loads[all.Items[i].Namespace+"/"+all.Items[i].Labels[clusterv1.WatchLabel]]++
		}
		if fmt.Sprint(loads) != fmt.Sprint(want) {
			return fmt.Errorf("they are %v", loads)
		}
		return nil
	})
}
