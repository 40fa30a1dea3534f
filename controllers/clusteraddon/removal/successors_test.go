// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
)

// The objects that an add-on is to have count as memory while they are remembered.
func TestContentsCount(t *testing.T) {
	memory := budget.New(budget.Limits{})
	removal.NewContents(memory).Put(budget.Tenant{}, "a", sets.New(deliver.ObjectKey{Name: strings.Repeat("a", 1000)}))
	if kept := memory.Usage().Cached; kept < 1000 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// TestSuccessorsThatCannotBeKnown has add-ons that can't say what they are to have, or what the
// leaving one has. Those of the same stack are assumed to have the same, and new ones that may be the same in another place.
func TestSuccessorsThatCannotBeKnown(t *testing.T) {
	same, other, added := addons.Wanted("a", "same"), addons.Wanted("b", "other"), addons.Wanted("b", "added")
	leaving := deliver.Summary{Release: deliver.Release{Namespace: added.Release().Namespace, Name: "old"}, Terms: deliver.Terms{Stack: "a"}, Chart: "web"}
	for _, a := range []*wanted.Addon{&same, &other, &added} {
		a.Chart.Path = a.Name
	}
	far, chart, named := addons.Wanted("b", "far"), addons.Wanted("b", "chart"), addons.Wanted("b", "old")
	for _, a := range []*wanted.Addon{&far, &chart, &named} {
		a.Namespace, a.Chart = "elsewhere", addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:1/charts/db"}}
	}
	chart.Chart.OCI = &addonsv1.OCISource{URL: "oci://127.0.0.1:1/charts/web"}
	c, q := given(t, leaving)
	c.Installed[same.Release()], c.Installed[other.Release()] = deliver.Summary{Installed: true}, deliver.Summary{Installed: true}
	q.Leaving = []deliver.Summary{leaving}
	waits := func(successors ...*wanted.Addon) result.All {
		var all result.All
		q.Remove(t.Context(), successors, &all)
		return all
	}
	all := waits(&same, &other, &added, &far, &chart, &named)
	for _, name := range []string{"same of AddonStack a", "added of AddonStack b", "chart of AddonStack b", "1 more"} {
		if is := all.Statuses[0]; is.Reason != reasons.WaitingForSuccessor || !strings.Contains(is.Message, name) || strings.Contains(is.Message, "far") || strings.Contains(is.Message, "other") {
			t.Errorf("it doesn't wait for %s: %+v", name, is)
		}
	}
	if all.RetryAfter != added.ProgressDeadline() {
		t.Errorf("it is looked at again after %s", all.RetryAfter)
	}
	c.Now = c.Now.Add(added.ProgressDeadline())
	if all = waits(&same, &added); strings.Contains(all.Statuses[0].Message, "added") || all.RetryAfter != 0 {
		t.Errorf("another stack's is waited for without end: %+v", all)
	}
}
