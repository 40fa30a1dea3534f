// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// plan plans some changes of a stack at once: what it is to be, revisions that it had, and what it never is. The model doesn't change:
// whatever a plan writes shows as an action without a reason.
func (f *fleet) plan() bool {
	s, n := f.random.IntN(stacks), 1+f.random.IntN(8)
	if !f.now().stacks[s].exists {
		return false
	}
	f.act("plan %s %d times", stackName(s), n)
	for range n {
		f.makePlan(s)
	}
	return true
}

// makePlan makes a plan of a stack at random.
func (f *fleet) makePlan(s int) {
	f.t.Helper()
	p := &addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, GenerateName: stackName(s) + "-"}}
	p.Spec.StackName = stackName(s)
	switch f.random.IntN(4) {
	case 0:
		revisions := &appsv1.ControllerRevisionList{}
		must.Succeed(f.t, f.hub().List(f.ctx(), revisions, client.InNamespace(f.namespace), client.MatchingLabels{addonsv1.StackNameLabel: stackName(s)}))
		if all := revisions.Items; len(all) > 0 {
			p.Spec.Revision = all[f.random.IntN(len(all))].Name
		}
	case 1, 2:
		text, err := json.Marshal(f.stackOf(f.never(s), s).Spec)
		must.Succeed(f.t, err)
		p.Spec.Template = &apiextensionsv1.JSON{Raw: text}
	}
	f.create(f.hub(), p)
	f.planned++
}

// never returns a model of a stack that has other components than ever, with another text, for any clusters.
func (f *fleet) never(s int) *model {
	m := *f.now()
	for k := range components {
		m.stacks[s].has[k] = f.random.IntN(2) == 0
		m.components[k].text, m.components[k].name = -1-f.random.IntN(100), f.random.IntN(names)
	}
	m.stacks[s].selector = selectors[f.random.IntN(len(selectors))]
	m.stacks[s].allowed, m.stacks[s].leaving, m.stacks[s].rollout = nil, nil, nil
	return &m
}

// planAtRest plans changes of all stacks while nothing else is to be done, and expects reads and dry runs alone.
func (f *fleet) planAtRest() {
	f.t.Helper()
	var marks []audit.Mark
	for _, w := range f.workloads {
		marks = append(marks, w.Audit.Mark(f.t))
	}
	for s := range stacks {
		for range 3 {
			if f.now().stacks[s].exists {
				f.makePlan(s)
			}
		}
	}
	phases := map[addonsv1.PlanPhase]int{}
	wait.Until(f.t, 2*time.Minute, "all plans are finished", func() error {
		all := &addonsv1.AddonPlanList{}
		must.Succeed(f.t, f.hub().List(f.ctx(), all, client.InNamespace(f.namespace)))
		phases = map[addonsv1.PlanPhase]int{}
		for i := range all.Items {
			p := &all.Items[i]
			if phases[p.Status.Phase]++; !p.IsFinished() {
				return fmt.Errorf("%s is %s: %s", p.Name, p.Status.Phase, inJSON(p.Status.Conditions))
			}
		}
		return nil
	})
	dry := 0
	for c, mark := range marks {
		for _, e := range mark.Requests(f.t, func(e *audit.Event) bool { return audit.By(user)(e) && audit.Write(e) }) {
			if strings.Contains(e.RequestURI, "dryRun=All") {
				dry++
			} else if e.ResponseStatus.Code < 300 {
				f.t.Errorf("%s: %s %s amid plans%s", clusterName(c), e.Verb, e.RequestURI, f.report())
			}
		}
	}
	f.t.Logf("%d plans were made; those of this management cluster are %v; the last ones took %d dry runs", f.planned, phases, dry)
}
