// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/must"
)

// recordsOf are those of a cluster.
type recordsOf map[deliver.Release]deliver.Summary

func (r recordsOf) Of(multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool) {
	return r, true
}
func (recordsOf) Failure(multicluster.ClusterName) error { return nil }

// askedCluster returns a request about a cluster that answers nothing, and how often that was asked for something.
func askedCluster(t *testing.T, records ...deliver.Summary) (q *clusterRun, asked *int) {
	t.Helper()
	asked = new(int)
	conn := connection.To(t, func(w http.ResponseWriter, _ *http.Request) { *asked++; w.WriteHeader(http.StatusInternalServerError) })
	sources, err := source.New(source.Options{})
	must.Succeed(t, err)
	q = &clusterRun{
		Reconciler: &Reconciler{Deliverer: deliver.New(deliver.Options{}), Sources: sources, records: recordsOf{}, Clock: testingclock.NewFakePassiveClock(time.Now())},
		ca:         &addonsv1.ClusterAddon{}, stored: &addonsv1.ClusterAddon{}, cluster: &member.Member{}, workload: workload.Cluster{Name: "team/prod", Conn: conn},
		memory: newMemory(), installed: map[deliver.Release]deliver.Summary{}, proofs: addons.Proofs(records...), now: time.Now(),
	}
	for _, r := range records {
		q.installed[r.Release] = r
	}
	return q, asked
}

// What has to go waits for what depends on it, or may take over its objects.
func TestLeavingWaits(t *testing.T) {
	base, web := addons.Installed("platform", "base"), addons.Installed("other", "web", "platform/base")
	for name, tc := range map[string]struct {
		prepare    func(q *clusterRun)
		successors []*wanted.Addon
		want       string
	}{
		"a wanted add-on depends on it": {func(q *clusterRun) {
			dependent := wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps", DependsOn: []string{"platform/base"}}, Stack: "other"}
			q.wanted = []wanted.Addon{dependent}
		}, nil, reasons.WaitingForDependent},
		"one that is left as it is depends on it": {func(q *clusterRun) {
			q.kept = []addonsv1.AddonStatus{releases.Status(web, addonsv1.AddonUnassigned)}
		}, nil, reasons.WaitingForDependent},
		"another one goes before": {func(q *clusterRun) { q.leaving = append(q.leaving, web) }, nil, reasons.WaitingForDependent},
		"a stack isn't known yet that may want its objects": {func(q *clusterRun) {
			q.unresolved = map[string]unresolvedStack{"new": {state: decide.Unseen}}
		}, nil, reasons.WaitingForSuccessor},
		"the removal of a stack is held that isn't there, and may want its objects": {func(q *clusterRun) {
			q.unresolved = map[string]unresolvedStack{"new": {state: decide.Held}}
		}, nil, reasons.WaitingForSuccessor},
		"one of its stack may take over its objects": {func(*clusterRun) {}, []*wanted.Addon{
			{Addon: addonsv1.Addon{Name: "next", Namespace: "apps", Chart: addonsv1.ChartSource{Path: "next"}}, Stack: "platform"},
		}, reasons.WaitingForSuccessor},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := askedCluster(t, base, web)
			q.leaving = []deliver.Summary{base}
			tc.prepare(q)
			var all result
			removal{q}.removeLeaving(t.Context(), tc.successors, &all)
			at := slices.IndexFunc(all.statuses, func(s addonsv1.AddonStatus) bool { return s.Name == "base" })
			if at < 0 || all.statuses[at].Reason != tc.want || all.statuses[at].Phase != addonsv1.AddonRemoving {
				t.Errorf("got %+v, want %s", all.statuses, tc.want)
			}
		})
	}
}

// A removal that has begun waits for no other add-on: half of what it would leave to that one may be gone.
func TestLeavingThatHasBegunWaitsForNoSuccessor(t *testing.T) {
	base := addons.Installed("platform", "base")
	base.Complete, base.Status = true, deliver.StatusUninstalling
	q, _ := askedCluster(t, base)
	next := wanted.Addon{Addon: addonsv1.Addon{Name: "next", Namespace: "apps", Chart: addonsv1.ChartSource{Path: "next"}}, Stack: "platform"}
	if one, waits := (removal{q}).waits(t.Context(), base, "", func() []successor { return []successor{{Addon: &next}} }); waits {
		t.Errorf("got %+v", one.status)
	}
}

// Two Clusters may have one API server: each sees its own releases.
func TestReleasesOfOtherClusterAddons(t *testing.T) {
	own, other := addons.Installed("platform", "own"), addons.Installed("platform", "other")
	own.Owner, other.Owner = "team/prod", "team/test"
	q, _ := askedCluster(t)
	q.ca.Namespace, q.ca.Name = "team", "prod"
	q.records = recordsOf{own.Release: own, other.Release: other}
	if _, err := (gathering{q}).read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, has := q.installed[own.Release]; !has || len(q.installed) != 1 {
		t.Errorf("installed: %v", q.installed)
	}
}

// Changed terms are written, as a removal will work by them. Those of a record that isn't proven aren't.
func TestTermsAreWritten(t *testing.T) {
	record := addons.Installed("platform", "web")
	changed := record.Terms
	changed.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	for name, tc := range map[string]struct {
		terms  deliver.Terms
		proven bool
		asks   bool
	}{
		"they are the same":       {record.Terms, true, false},
		"they changed":            {changed, true, true},
		"the record isn't proven": {changed, false, false},
	} {
		q, asked := askedCluster(t, record)
		if !tc.proven {
			q.proofs = &releases.Proofs{}
		}
		_ = q.terms().Write(t.Context(), record, tc.terms)
		if (*asked > 0) != tc.asks {
			t.Errorf("%s: the cluster is asked %d times", name, *asked)
		}
	}
}

// The status is about a generation only once all of it was looked at, and the cluster was told what is left behind.
func TestGenerationThatWasSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		unreachable bool
		untold      error
		seen        bool
	}{
		"all of it":                     {seen: true},
		"the cluster is unreachable":    {unreachable: true},
		"a record doesn't say it is so": {untold: errors.New("refused")},
	} {
		q, _ := askedCluster(t)
		q.ca.Generation, q.ca.Status.ObservedGeneration = 2, 1
		if _, err := (statusReport{q}).finish(result{followUp: followUp{unreachable: tc.unreachable}}, tc.untold); !errors.Is(err, tc.untold) {
			t.Fatal(err)
		}
		if seen := q.ca.Status.ObservedGeneration == 2; seen != tc.seen {
			t.Errorf("%s: the status is about generation %d", name, q.ca.Status.ObservedGeneration)
		}
		if conditions.IsUnknown(q.ca, addonsv1.AddonsReadyCondition) {
			t.Errorf("%s: the records could be read", name)
		}
	}
}

// An add-on is Ready while its source is down, if it is installed as it is to be: with the values that it has now, too.
func TestReadyWhileItsSourceIsDown(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*wanted.Addon)
		ready  bool
	}{
		"its source is down":            {failure.SourceUnavailable, func(*wanted.Addon) {}, true},
		"it fails for another reason":   {object.ReasonForbidden, func(*wanted.Addon) {}, false},
		"its values have changed since": {failure.SourceUnavailable, func(a *wanted.Addon) { a.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a":"b"}`)} }, false},
		"another chart is wanted":       {failure.SourceUnavailable, func(a *wanted.Addon) { a.Chart.Path = "other" }, false},
	} {
		a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps", Chart: addonsv1.ChartSource{Path: "web"}}, Stack: "platform"}
		q, _ := askedCluster(t)
		in := &inputs.Inputs{Addon: a, Chart: a.Reference(q.ca.Namespace), Artifact: "sha256:1"}
		must.Succeed(t, q.reader().ReadValues(t.Context(), in, deliver.Summary{}))
		record := addons.Installed("platform", "web")
		record.Owned, record.Artifact, record.Spec, record.Digest = true, in.Artifact, a.SpecDigest(), in.Digest(job.FactsUsed{})
		q.proofs = addons.Proofs(record)
		tc.change(a)
		one := because(a.Status(), tc.reason, "why")
		one.say(delivery{q}.cameOf(t.Context(), &turn{addon: a, record: record, status: a.Status()}, decide.Deliver, one.status).Say())
		if ready := one.status.Phase == addonsv1.AddonReady; ready != tc.ready {
			t.Errorf("%s: %+v", name, one.status)
		}
	}
}

// A Cluster that is being deleted goes on at once if its records are known, and have nothing that it waits for.
func TestDeletionWithKnownRecords(t *testing.T) {
	q, _ := askedCluster(t)
	q.removes, q.lanes, q.Queue = true, newLanes(2), &Queue{}
	if _, err := q.deliver(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if d := q.ca.Status.Deletion; d == nil || d.State != addonsv1.GateOpen {
		t.Errorf("deletion: %+v", d)
	}
}
