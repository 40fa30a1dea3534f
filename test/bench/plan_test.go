// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/wait"
)

// unlike is a label of the Clusters that aren't like all others, with what the template makes of it: one more field, more objects,
// and what an API server refuses.
const unlike = "unlike"

var unlikeValues = []string{"operator:\n  replicas: 3\n", "prometheus:\n  enabled: true\n", "operator:\n  replicas: -1\n"}

// A plan asks so many clusters at once, and of each about so many objects.
const planClusters, planObjects = 4, 6

// TestPlan plans an upgrade of cilium on a fleet of which all clusters but three are alike but for their name. It prints what the plan
// costs, and what the dry runs alone do.
func TestPlan(t *testing.T) {
	if os.Getenv(clustersEnv) == "" {
		t.Skip(clustersEnv + " says how many clusters there are to be")
	}
	clusters := numbers(t, clustersEnv, 0)[0]
	f := startFleet(t, size{Clusters: clusters, Instances: 1, Renderers: 2, Addons: 1, Servers: min(clusters, numbers(t, serversEnv, 8)[0]), MemoryLimit: os.Getenv(memoryEnv)}, realdata.Path(t, "charts"))
	for i := range unlikeValues {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.clusters[i].name}}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"%s":"v%d"}}}`, unlike, i)
		must.Succeed(t, f.hub.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, patch)))
	}
	f.install()
	f.settle()
	f.restart()
	time.Sleep(atRest)                                 // what was used for a while is given back
	for _, name := range []string{"first", "second"} { // for which charts are known, and maybe their renderings
		p := f.plan(name)
		must.Equal(t, int32(clusters), p.Status.Clusters.Changed+p.Status.Clusters.Refused)
		if len(p.Status.Groups) > 1+len(unlikeValues) || int(p.Status.Groups[0].Clusters) != clusters-len(unlikeValues) {
			t.Errorf("there are %d groups: %+v", len(p.Status.Groups), p.Status.Groups)
		}
		if name == "second" {
			t.Logf("dry runs alone: %s", f.dryRuns(p.Status.Groups[0].Changes))
		}
	}
	f.stop()
}

// upgradeOfCilium returns the stack as an upgrade has it.
func (f *fleet) upgradeOfCilium() *addonsv1.AddonStack {
	s := f.stack(1)
	cilium := &s.Spec.Addons[0]
	cilium.Chart.Path = "cilium-1.19.6.tgz"
	for i, values := range unlikeValues {
		cilium.ValuesTemplate += fmt.Sprintf("{{ if eq (index .Cluster.metadata.labels %q | default \"\") \"v%d\" }}%s{{ end }}", unlike, i, values)
	}
	return s
}

// plan plans the upgrade, and prints what it costs.
func (f *fleet) plan(name string) *addonsv1.AddonPlan {
	text, err := json.Marshal(f.upgradeOfCilium().Spec)
	must.Succeed(f, err)
	p := &addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.StackName, p.Spec.Template = "platform", &apiextensionsv1.JSON{Raw: text}
	rest := f.memory(process.Resident)
	begin, most := f.snapshot(), rest
	must.Succeed(f, f.hub.Create(f.Context(), p))
	wait.Until(f.TB, f.patience(), "the plan is done", func() error {
		most = max(most, f.memory(process.Resident))
		must.Succeed(f, f.hub.Get(f.Context(), client.ObjectKeyFromObject(p), p))
		if p.Status.Phase != addonsv1.PlanDone {
			return fmt.Errorf("it is %s: %+v", p.Status.Phase, p.Status)
		}
		return nil
	})
	is := f.since(begin)
	f.Logf("%s plan: %d groups, %.1f s, %.1f CPU seconds of manager and renderers, %.1f of everything, %.0f renderings, %.1f requests for each cluster (%s), memory %.0f MiB at rest and %.0f MiB more at most",
		name, len(p.Status.Groups), is.Seconds, is.CPU, is.AllCPU, is.Renderings, is.Requests, is.RequestsByUse, rest, most-rest)
	f.settle()
	return p
}

// dryRuns upgrades the fleet, and returns how long the dry runs take by which the objects that changed would be changed back.
func (f *fleet) dryRuns(changes []addonsv1.PlanChange) time.Duration {
	g, objects := NewWithT(f.TB), f.installed()
	s := &addonsv1.AddonStack{}
	must.Succeed(f, f.hub.Get(f.Context(), client.ObjectKeyFromObject(f.stack(1)), s))
	s.Spec = f.upgradeOfCilium().Spec
	must.Succeed(f, f.hub.Update(f.Context(), s))
	f.await("upgraded", func(ca *addonsv1.ClusterAddon) bool {
		return len(ca.Status.Addons) == 1 && (ca.Status.Addons[0].Revision == 2 || ca.Status.Addons[0].Phase == addonsv1.AddonFailed)
	})
	f.settle()
	isChanged := func(o *unstructured.Unstructured) bool {
		for _, c := range changes {
			if c.Kind == o.GetKind() && c.Name == o.GetName() && c.Namespace == o.GetNamespace() {
				return true
			}
		}
		return false
	}
	clients := make([]dynamic.Interface, len(f.clusters))
	f.each(func(i int, c *cluster) {
		var err error
		clients[i], err = dynamic.NewForConfig(c.config(f.TB))
		g.Expect(err).NotTo(HaveOccurred())
	})
	begin, mark := time.Now(), f.snapshot()
	var all errgroup.Group
	all.SetLimit(planClusters)
	for i, c := range f.clusters {
		all.Go(func() error {
			var each errgroup.Group
			each.SetLimit(planObjects)
			for _, o := range objects[i][0].objects {
				if !isChanged(o) {
					continue
				}
				each.Go(func() error {
					mapping, err := c.server.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
					if err != nil {
						return err
					}
					_, err = clients[i].Resource(mapping.Resource).Namespace(o.GetNamespace()).Apply(f.Context(), o.GetName(), o,
						metav1.ApplyOptions{FieldManager: "chandler/kube-system/cilium", Force: true, DryRun: []string{metav1.DryRunAll}})
					return err
				})
			}
			return each.Wait()
		})
	}
	must.Succeed(f, all.Wait())
	took, n := time.Since(begin), 0
	for _, m := range mark.marks {
		n += len(m.Requests(f.TB, func(e *audit.Event) bool { return audit.By(user)(e) && strings.Contains(e.RequestURI, "dryRun=All") }))
	}
	f.Logf("%d dry runs, of %d objects of each cluster", n, len(changes))
	return took
}
