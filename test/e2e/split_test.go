// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// split is the table of docs/instance-scopes.md about one namespace that two instances
// share by filters: who watches, gets and writes an object.
var split = []struct {
	object      string
	blue, green string

	resource, name, label string
}{
	{"Cluster with the label blue", "watches", "-", "clusters", "one", "blue"},
	{"its kubeconfig Secret", "watches, gets", "watches", "secrets", "one-kubeconfig", ""},
	{"its ClusterAddon", "watches, writes", "-", "clusteraddons", "one", "blue"},
	{"AddonStack with the label blue", "watches, gets, writes", "-", "addonstacks", "own", "blue"},
	{"its ControllerRevisions", "watches, writes", "-", "controllerrevisions", "own-", "blue"},
	{"AddonStack with the label shared", "watches, gets, writes", "watches, gets, writes", "addonstacks", "base", "shared"},
	{"its ControllerRevisions (of two that make one, the second finds it)", "watches, writes", "watches, writes", "controllerrevisions", "base-", "shared"},
	{"Secret with values that it refers to", "watches, gets", "watches, gets", "secrets", "values", ""},
	{"ConfigMap with a chart that it refers to", "watches, gets", "watches, gets", "configmaps", "charts", ""},
}

// TestSplit has two instances that split the Clusters of a namespace, with an
// AddonStack for one of them, and one for both.
func TestSplit(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	servers := map[string]*server{"one": workloadServer(t, 0), "two": workloadServer(t, 1)}
	start := world.hub.mark(t)
	ofBlue, ofGreen := tn.instance("blue"), tn.instance("green")
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: x\n"}))
	tn.create(tn.configMapWithChart("charts", configMapChart.archive("charts", "1.0.0")))
	inputs := func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "charts"}}
		a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: "values"}}
	}
	tn.makeCluster("one", servers["one"], labels(clusterv1.WatchLabel+"=blue"))
	tn.makeCluster("two", servers["two"], labels(clusterv1.WatchLabel+"=green"))
	tn.create(tn.stackWithFilter("own", "blue", tn.addon("own", "", inputs)))
	tn.create(tn.stackWithFilter("base", addonsv1.SharedWatchFilter, tn.addon("base", "", inputs)))

	mark := servers["one"].mark(t)
	green := ofGreen.startManager("--watch-filter=green")
	tn.awaitCluster("two", "it gets what is meant for all", ready("base"))
	settleAll(t, green)
	NewWithT(t).Expect(mark.requests(t, tn.clusterUser("one"))).To(BeEmpty(), "an instance doesn't even connect to the clusters of others")
	blue := ofBlue.startManager("--watch-filter=blue")
	tn.awaitCluster("one", "it gets both", ready("base", "own"))
	tn.awaitStatus("base", "each says its part", says("blue", 1, 1), says("green", 1, 1))
	settleAll(t, blue, green)

	// Each of the two is the first to see a new spec once.
	for _, who := range []struct {
		sleeps, works *tenant
		filter        string
	}{{ofBlue, ofGreen, "blue"}, {ofGreen, ofBlue, "green"}} {
		asleep, awake := blue, green
		if who.sleeps == ofGreen {
			asleep, awake = green, blue
		}
		asleep.Stop(t)
		tn.setText("base", "without "+who.filter)
		tn.awaitStatus("base", "one instance has seen it", func(s *addonsv1.AddonStack) error {
			return behind(s, who.filter)
		})
		settleAll(t, awake)
		if who.sleeps == ofBlue {
			blue = ofBlue.startManager("--watch-filter=blue")
		} else {
			green = ofGreen.startManager("--watch-filter=green")
		}
		tn.awaitStatus("base", "and so has the other", counts(2, 2), says("blue", 1, 1), says("green", 1, 1))
	}
	settleAll(t, blue, green)

	byBlue, byGreen := start.requests(t, ofBlue.user), start.requests(t, ofGreen.user)
	for _, row := range split {
		t.Run(row.object, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(dealings(t, byBlue, row.resource, row.name, row.label)).To(Equal(row.blue), "the instance of blue")
			g.Expect(dealings(t, byGreen, row.resource, row.name, row.label)).To(Equal(row.green), "the instance of green")
		})
	}
}

// dealings says what somebody has to do with an object that has a watch label. A
// name that ends in "-" is the stem of one.
func dealings(t *testing.T, requests []auditEvent, resource, name, label string) string {
	t.Helper()
	isMeant := func(n string) bool { return n == name || strings.HasSuffix(name, "-") && strings.HasPrefix(n, name) }
	has := k8slabels.Set{addonsv1.StackNameLabel: strings.TrimSuffix(name, "-")}
	if label != "" {
		has[clusterv1.WatchLabel] = label
	}
	watches, gets, writes, second := false, false, false, false
	for _, e := range requests {
		if e.ObjectRef == nil || e.ObjectRef.Resource != resource {
			continue
		}
		switch e.Verb {
		case "watch":
			selector, err := k8slabels.Parse(labelSelectorOf(t, e))
			must.Succeed(t, err)
			watches = watches || selector.Matches(has)
		case "get":
			gets = gets || isMeant(e.ObjectRef.Name) && !second
		case "create", "update", "patch", "delete":
			writes = writes || isMeant(e.ObjectRef.Name)
			// Who comes second with a revision looks at the one that is there.
			second = second || e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusConflict
		}
	}
	var does []string
	for what, is := range map[string]bool{"watches": watches, "gets": gets, "writes": writes} {
		if is {
			does = append(does, what)
		}
	}
	if len(does) == 0 {
		return "-"
	}
	order := []string{"watches", "gets", "writes"}
	slices.SortFunc(does, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return strings.Join(does, ", ")
}

// behind expects that all instances but the one with this filter have seen the newest spec.
func behind(s *addonsv1.AddonStack, filter string) error {
	for _, i := range s.Status.Instances {
		if (i.ObservedGeneration == s.Generation) == (i.WatchFilter == filter) {
			return fmt.Errorf("instance %s has seen generation %d of %d", i.WatchFilter, i.ObservedGeneration, s.Generation)
		}
	}
	return nil
}

// labelSelectorOf is that of a LIST or WATCH.
func labelSelectorOf(t *testing.T, e auditEvent) string {
	t.Helper()
	u, err := url.Parse(e.RequestURI)
	must.Succeed(t, err)
	return u.Query().Get("labelSelector")
}
