// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// Variables that say how far a fleet grows, all of them lists of numbers with spaces between.
const (
	stacksEnv      = "CHANDLER_BENCH_STACKS"       // how many stacks select all clusters
	stackAddonsEnv = "CHANDLER_BENCH_STACK_ADDONS" // how many small add-ons each of them has, by default ten
	idleStacksEnv  = "CHANDLER_BENCH_IDLE_STACKS"  // how many stacks select no cluster; fleets are measured without them, too
)

// idleAddons is how many add-ons a stack has that selects no cluster.
const idleAddons = 10

// growth are the runs of a fleet.
type growth struct {
	Size size    `json:"size"`
	Runs []grown `json:"runs"`
}

// grown is the result of one run.
type grown struct {
	Install phase `json:"install"`
	Edit    phase `json:"edit"`   // of a value of one add-on of one stack
	Shared  phase `json:"shared"` // a change of the ConfigMap that all add-ons have values from
}

// TestGrowth measures what stacks and add-ons cost that are small: an add-on is one ConfigMap.
func TestGrowth(t *testing.T) {
	if os.Getenv(stacksEnv) == "" {
		t.Skip(stacksEnv + " says how many stacks there are to be")
	}
	clusters := numbers(t, clustersEnv, 4)[0]
	idle := []int{0}
	if os.Getenv(idleStacksEnv) != "" {
		idle = append(idle, numbers(t, idleStacksEnv, 0)...)
	}
	var all []*growth
	for _, stacks := range numbers(t, stacksEnv, 1) {
		for _, addons := range numbers(t, stackAddonsEnv, 10) {
			for _, n := range idle {
				all = append(all, &growth{Size: size{
					Clusters: clusters, Servers: min(clusters, numbers(t, serversEnv, 2)[0]), Instances: 1, Renderers: 2, Addons: addons, Stacks: stacks, IdleStacks: n,
				}})
			}
		}
	}
	for i := range numbers(t, runsEnv, 1)[0] { // of each by turns, as the machine has other work
		for _, m := range all {
			t.Run(fmt.Sprintf("%s/%d", m.name(), i), func(t *testing.T) { m.Runs = append(m.Runs, measureGrowth(t, m.Size)) })
			if t.Failed() {
				return
			}
		}
	}
	table := growthTable(all)
	t.Log("\n" + table)
	if out := os.Getenv(outEnv); out != "" {
		must.Succeed(t, write(out, "growth", all, []string{table}))
	}
}

// measureGrowth runs all phases once.
func measureGrowth(t *testing.T, s size) (r grown) {
	f := startFleet(t, s, smallChart(t))
	shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared"}, Data: map[string]string{"values.yaml": "shared: a"}}
	must.Succeed(t, f.hub.Create(t.Context(), shared))
	for i := range s.IdleStacks {
		must.Succeed(t, f.hub.Create(t.Context(), smallStack(fmt.Sprintf("idle%03d", i), idleAddons, map[string]string{"idle": "yes"})))
	}
	f.rest()

	begin := f.snapshot()
	for i := range s.Stacks {
		must.Succeed(t, f.hub.Create(t.Context(), smallStack(stackName(i), s.Addons, nil)))
	}
	f.await("ready", f.allReady(1, 1))
	r.Install = f.since(begin)
	f.rest()

	begin = f.snapshot()
	edited := smallStack(stackName(0), s.Addons, nil)
	must.Succeed(t, f.hub.Get(t.Context(), client.ObjectKeyFromObject(edited), edited))
	edited.Spec.Addons[0].Values = &apiextensionsv1.JSON{Raw: []byte(`{"own": "b"}`)}
	must.Succeed(t, f.hub.Update(t.Context(), edited))
	f.await("edited", f.allReady(2, 1))
	took := time.Since(begin.at).Seconds()
	f.rest() // other stacks' statuses may be written late
	r.Edit = f.since(begin)
	r.Edit.Seconds = took

	shared.Data["values.yaml"] = "shared: b"
	begin = f.snapshot()
	must.Succeed(t, f.hub.Update(t.Context(), shared))
	f.await("changed", f.allReady(3, 2))
	r.Shared = f.since(begin)
	f.stop()

	t.Logf("install: requests for each cluster %s; to the management cluster %s", r.Install.RequestsByUse, r.Install.HubRequestsByUse)
	t.Logf("edit: requests for each cluster %s; to the management cluster %s; statuses of stacks %v", r.Edit.RequestsByUse, r.Edit.HubRequestsByUse, r.Edit.StatusWrites)
	t.Logf("shared ConfigMap: requests for each cluster %s; to the management cluster %s", r.Shared.RequestsByUse, r.Shared.HubRequestsByUse)
	return r
}

// rest returns once neither the manager does anything nor a cluster is asked.
func (f *fleet) rest() {
	f.settle()
	manager.AwaitRest(f.TB, f.managers...)
}

// allReady returns a check whether a cluster has all add-ons: the edited one in one revision, and all others in another one.
func (f *fleet) allReady(edited, others int32) func(*addonsv1.ClusterAddon) bool {
	return func(ca *addonsv1.ClusterAddon) bool {
		for _, a := range ca.Status.Addons {
			want := others
			if a.Name == addonName(stackName(0), 0) {
				want = edited
			}
			if a.Phase != addonsv1.AddonReady || a.Revision != want {
				return false
			}
		}
		return len(ca.Status.Addons) == f.size.Stacks*f.size.Addons && conditions.IsTrue(ca, addonsv1.ReadyCondition)
	}
}

func stackName(i int) string { return fmt.Sprintf("s%03d", i) }

func addonName(stack string, i int) string { return fmt.Sprintf("%s-a%02d", stack, i) }

// smallStack returns a stack for the clusters with labels. Each of its add-ons has values of its own, and those that all share.
func smallStack(name string, addons int, labels map[string]string) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: labels}
	for i := range addons {
		s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{
			Name: addonName(name, i), Namespace: "small", Chart: addonsv1.ChartSource{Path: "small"},
			Values:     &apiextensionsv1.JSON{Raw: []byte(`{"own": "a"}`)},
			ValuesFrom: []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: "shared", Key: "values.yaml"}},
		})
	}
	return s
}

// smallChart writes a chart of one ConfigMap, and returns the folder that it is in.
func smallChart(t *testing.T) string {
	folder := t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(folder, "small/templates"), 0o755))
	for file, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.0.0\n",
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n" +
			"data: {own: {{ .Values.own }}, shared: {{ .Values.shared }}}\n",
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, "small", file), []byte(text), 0o644))
	}
	return folder
}
