// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// readsAndWrites is the table of docs/instance-scopes.md, line by line: what an instance
// asks its management cluster for, and what it writes there.
var readsAndWrites = []struct {
	object   string
	watched  string // label selector of LIST and WATCH, "-" for none of these
	filtered string // the same with --watch-filter=blue
	besides  string // what is read beside that
	writes   string

	resource string
	lists    string // label selector of the LISTs that are meant by besides, "*" for any value
	gets     func(combination, string) bool
	must     []string // writes of this test's scenario
	may      []string // writes that depend on timing, or on what this scenario doesn't have
}{
	{
		"Cluster", "all", "`cluster.x-k8s.io/watch-filter=blue`",
		"of each other filter that `status.instances` of a shared stack names, one Cluster's metadata", "-",
		"clusters", "", nil, nil, nil,
	},
	{
		"AddonStack", "all", "`cluster.x-k8s.io/watch-filter in (blue,shared)`",
		"its spec as it is served, when it has changed; whether it exists, where a ClusterAddon names it and it isn't seen", "patch of the status",
		"addonstacks", "", combination.ownStack, []string{"patch/status"}, nil,
	},
	{
		"ControllerRevision", "`addons.cluster.x-k8s.io/stack`", "`addons.cluster.x-k8s.io/stack,cluster.x-k8s.io/watch-filter in (blue,shared)`",
		"all of one AddonStack, when its spec or label has changed", "create, patch, delete",
		"controllerrevisions", "addons.cluster.x-k8s.io/stack=*", combination.ownStack, []string{"create"}, []string{"patch", "delete"},
	},
	{
		"ClusterAddon", "all", "`cluster.x-k8s.io/watch-filter=blue`",
		"the one that is taken over; all of the namespace, when a revision of a shared stack is to be deleted", "create, patch, patch of the status",
		"clusteraddons", "", combination.ownCluster, []string{"create", "patch/status"}, []string{"patch"},
	},
	{
		"AddonPlan", "all", "`cluster.x-k8s.io/watch-filter=blue`", "-", "patch of the status, delete",
		"addonplans", "", nil, nil, []string{"patch/status", "delete"},
	},
	{
		"Secret: values, charts, kubeconfigs", "metadata of all", "metadata of all",
		"those that an AddonStack refers to, and the kubeconfigs of Clusters that are seen", "-",
		"secrets", "", combination.ownSecret, nil, nil,
	},
	{
		"ConfigMap: values, charts", "metadata of all", "metadata of all",
		"those that an AddonStack refers to", "-",
		"configmaps", "", func(combination, string) bool { return true }, nil, nil,
	},
	{
		"ControlPlane, InfraCluster", "metadata of all, of the kinds that templates use", "metadata of all, of the kinds that templates use",
		"those of Clusters that are seen", "-",
		"testclusters", "", combination.ownCluster, nil, nil,
	},
	{
		"ProviderInstance", "-", "-", "its own", "create, update, patch of the status, delete",
		"providerinstances", "", nil, []string{"create", "patch/status"}, []string{"update", "delete"},
	},
	{
		"Lease", "-", "-", "its own", "create, update",
		"leases", "", nil, []string{"create"}, []string{"update"},
	},
	{
		"Event", "-", "-", "-", "create, patch",
		"events", "", nil, []string{"create"}, []string{"patch"},
	},
	{
		"SelfSubjectAccessReview", "-", "-", "-", "create, before it starts to work",
		"selfsubjectaccessreviews", "", nil, nil, []string{"create"},
	},
}

// combination is one of flags, with where they send LIST and WATCH, also a line of
// docs/instance-scopes.md.
type combination struct {
	name       string
	flags      string
	where      string
	namespaced bool
	filter     string
}

var combinations = []combination{
	{"neither", "none", "all namespaces", false, ""},
	{"namespace", "`--namespace=a,b`", "a and b, each by itself", true, ""},
	{"filter", "`--watch-filter=blue`", "all namespaces", false, "blue"},
	{"both", "`--namespace=a,b --watch-filter=blue`", "a and b, each by itself", true, "blue"},
}

// Objects of this test have the name of their label: blue, green, shared, or plain.
func (c combination) ownCluster(name string) bool { return c.filter == "" || name == c.filter }

func (c combination) ownStack(name string) bool {
	name, _, _ = strings.Cut(name, "-") // of a revision
	return c.filter == "" || name == c.filter || name == addonsv1.SharedWatchFilter
}

func (c combination) ownSecret(name string) bool {
	cluster, isKubeconfig := strings.CutSuffix(name, "-kubeconfig")
	return !isKubeconfig || c.ownCluster(cluster)
}

// TestReadsAndWrites runs an instance under each combination of flags. One without
// --namespace manages what other tests make, so they come later.
func TestReadsAndWrites(t *testing.T) {
	long.Test(t)
	installInfraClusterCRD(t)
	for _, c := range combinations {
		t.Run(c.name, func(t *testing.T) {
			tn, requests := runUnder(newTenant(t), c)
			evaluate(t, tn, c, requests)
		})
	}
}

// runUnder gives an instance work of each kind, inside of its scope and outside.
func runUnder(tn *tenant, c combination) (*tenant, []auditEvent) {
	tn.t.Helper()
	s := workloadServer(tn.t, 0)
	b, outside := *tn, *tn
	b.namespace += "-b"
	outside.namespace += "-c"
	flags := []string{"--leader-elect", "--leader-elect-namespace=" + tn.namespace, "--watch-filter=" + c.filter}
	for _, other := range []*tenant{&b, &outside} {
		world.hub.createNamespace(tn.t, other.namespace)
	}
	if c.namespaced {
		tn.allowIn(b.namespace)
		flags = append(flags, "--namespace="+tn.namespace+","+b.namespace)
	} else {
		tn.allowEverywhere()
		must.Succeed(tn.t, world.hub.FreeScopes(tn.t.Context(), "")) // of tests before this one, whose managers were killed
	}
	start := world.hub.mark(tn.t)
	var mine []string
	for _, in := range []*tenant{tn, &b, &outside} {
		tn.t.Cleanup(in.clear) // the next instance may see it
		in.create(in.secret("values", map[string]string{"values.yaml": "text: x\n"}))
		in.create(in.configMapWithChart("charts", configMapChart.archive("charts", "1.0.0")))
		in.create(in.infraCluster("blue", "eu-1"))
		for _, label := range []string{"blue", "green", "plain", addonsv1.SharedWatchFilter} {
			stack := in.stackWithFilter(label, label, in.addon(label, "", withTemplate("region: '{{ .InfraCluster.spec.region }}'\n"), func(a *addonsv1.Addon) {
				a.Chart = addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "charts"}}
				a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: "values"}}
			}))
			cluster := labels(clusterv1.WatchLabel + "=" + label)
			if label == "plain" {
				stack.Labels, cluster = nil, nil
			}
			in.create(stack)
			if in == tn && c.ownStack(label) {
				mine = append(mine, label)
			}
			switch {
			case label == addonsv1.SharedWatchFilter: // no Cluster is for all
			case label == "blue" && in == tn:
				in.makeCluster(label, s, cluster, withInfraCluster(label))
			default:
				in.makeClusterObject(label, cluster)
			}
		}
	}
	m := tn.launch(flags...)
	tn.awaitCluster("blue", "the stacks of the scope are installed", ready(mine...))
	settleAll(tn.t, m)
	tn.setText(addonsv1.SharedWatchFilter, "another")
	tn.awaitCluster("blue", "a change is taken up", installedAs(addonsv1.SharedWatchFilter, 2, ""))
	settleAll(tn.t, m)
	m.Stop(tn.t)
	return tn, start.requests(tn.t, tn.user)
}

// clear deletes what instances look at in the namespace.
func (tn *tenant) clear() {
	ctx := context.WithoutCancel(tn.t.Context())
	for _, obj := range []client.Object{&addonsv1.AddonStack{}, &clusterv1.Cluster{}, &addonsv1.ClusterAddon{}, &appsv1.ControllerRevision{}} {
		if err := world.hub.DeleteAllOf(ctx, obj, client.InNamespace(tn.namespace)); err != nil {
			tn.t.Error(err)
		}
	}
}

// withInfraCluster makes a Cluster refer to its infrastructure object.
func withInfraCluster(name string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: infraKind, Name: name}
	}
}

// evaluate compares what was asked of the API server with the table.
func evaluate(t *testing.T, tn *tenant, c combination, requests []auditEvent) {
	places := []string{""}
	if c.namespaced {
		places = []string{tn.namespace, tn.namespace + "-b"}
	}
	known := map[string]bool{}
	for _, row := range readsAndWrites {
		known[row.resource] = true
		t.Run(row.object, func(t *testing.T) {
			selector := row.watched
			if c.filter != "" {
				selector = row.filtered
			}
			expected := map[string]bool{}
			for _, place := range places {
				if selector != "-" {
					expected[place+" "+selectorIn(selector)] = true
				}
			}
			seen, done := map[string]bool{}, map[string]bool{}
			for _, e := range requests {
				if e.ObjectRef == nil || e.ObjectRef.Resource != row.resource {
					continue
				}
				if c.namespaced && e.ObjectRef.Namespace != "" && !slices.Contains(places, e.ObjectRef.Namespace) {
					t.Errorf("%s %s is outside of the namespaces", e.Verb, e.RequestURI)
				}
				switch e.Verb {
				case "list", "watch":
					key := e.ObjectRef.Namespace + " " + labelSelectorOf(t, e)
					if stem, isStem := strings.CutSuffix(row.lists, "*"); isStem && e.Verb == "list" && strings.HasPrefix(labelSelectorOf(t, e), stem) {
						continue
					}
					if seen[key] = true; !expected[key] {
						t.Errorf("%s %s isn't in the table", e.Verb, e.RequestURI)
					}
				case "get":
					if row.besides == "-" || row.gets != nil && !row.gets(c, e.ObjectRef.Name) {
						t.Errorf("%s %s is outside of the scope", e.Verb, e.RequestURI)
					}
				default:
					verb := strings.TrimSuffix(e.Verb+"/"+e.ObjectRef.Subresource, "/")
					if done[verb] = true; !slices.Contains(append(row.must, row.may...), verb) {
						t.Errorf("%s %s isn't in the table", e.Verb, e.RequestURI)
					}
					if e.ObjectRef.Name != "" && row.gets != nil && !row.gets(c, e.ObjectRef.Name) {
						t.Errorf("%s %s is outside of the scope", e.Verb, e.RequestURI)
					}
				}
			}
			for key := range expected {
				if !seen[key] {
					t.Errorf("no LIST or WATCH of %q", key)
				}
			}
			for _, verb := range row.must {
				if !done[verb] {
					t.Errorf("no %s, which this test can't do without", verb)
				}
			}
		})
	}
	for _, e := range requests {
		if e.ObjectRef != nil && e.ObjectRef.Resource != "" && !known[e.ObjectRef.Resource] {
			t.Errorf("%s %s: the table doesn't have this kind", e.Verb, e.RequestURI)
		}
	}
}

// selectorIn is the label selector that a cell of the table names, "" for none.
func selectorIn(cell string) string {
	if selector, isCode := strings.CutPrefix(cell, "`"); isCode {
		return strings.TrimSuffix(selector, "`")
	}
	return ""
}

// TestReadsAndWritesAreDocumented compares the tables with docs/instance-scopes.md.
func TestReadsAndWritesAreDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(world.root, "docs/instance-scopes.md"))
	must.Succeed(t, err)
	var lines [][]string
	for _, c := range combinations {
		lines = append(lines, []string{c.flags, c.where})
	}
	for _, r := range readsAndWrites {
		lines = append(lines, []string{r.object, r.watched, r.filtered, r.besides, r.writes})
	}
	for _, r := range split {
		lines = append(lines, []string{r.object, r.blue, r.green})
	}
	for _, cells := range lines {
		if line := "| " + strings.Join(cells, " | ") + " |"; !strings.Contains(string(data), line+"\n") {
			t.Errorf("docs/instance-scopes.md doesn't have the line\n%s", line)
		}
	}
}
