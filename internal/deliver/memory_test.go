// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// withMemory gives the env a Deliverer with so much memory for all, and for a cluster.
func (e *env) withMemory(all, cluster, kept int64) *budget.Budget {
	memory, wakeup := budget.New(budget.Limits{All: all, Cluster: cluster}), e.wakeup
	e.d.Deliverer = deliver.New(deliver.Options{Clock: e.clock, Memory: memory, MaxKept: kept, Notify: func(string) {
		select {
		case wakeup <- struct{}{}:
		default:
		}
	}})
	e.ctx = budget.WithTenant(e.ctx, budget.Tenant{Namespace: "fleet", Cluster: "a"})
	return memory
}

// expectNoClaim expects that no call has memory.
func (e *env) expectNoClaim(memory *budget.Budget) {
	e.t.Helper()
	e.Expect(memory.Usage().Claimed).To(BeZero(), "what a call had is given back")
}

// TestAddonsWaitForMemory has others take the memory that an add-on needs. It says so, and is installed, upgraded and removed once
// there is some.
func TestAddonsWaitForMemory(t *testing.T) {
	e, ns := alone(t)
	memory := e.withMemory(8<<20, 0, 1)
	others := memory.Claim(budget.Tenant{Namespace: "others"}, 0)
	take := func() { e.Expect(others.Grow(e.ctx, 8<<20)).To(Succeed()) }
	waits := func(o deliver.Outcome, phase addonsv1.AddonPhase) {
		t.Helper()
		e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForMemory), o.Message)
		e.Expect(o.Phase).To(Equal(phase))
		e.Expect(o.RetryAfter).To(Equal(5 * time.Second))
		e.Expect(memory.Usage()).To(Equal(budget.Usage{Claimed: 8 << 20}), "it waits no more")
		others.Shrink(0)
	}
	want := e.want(ns, manyObjects("1"))
	take()
	waits(e.ensure(want), addonsv1.AddonInstalling)
	e.Expect(e.get("v1", "ConfigMap", ns, "c00")).To(BeNil())
	e.install(want)
	e.expectNoClaim(memory)

	ctx, waited := deliver.WithOneWait(e.ctx)
	e.ctx = ctx
	next := e.want(ns, manyObjects("2"))
	take()
	o := e.ensure(next)
	e.Expect(o.Revision).To(BeEquivalentTo(1))
	waits(o, addonsv1.AddonUpgrading)
	e.Expect(waited()).To(BeTrue())
	take()
	began := time.Now()
	waits(e.ensure(next), addonsv1.AddonUpgrading)
	e.Expect(time.Since(began)).To(BeNumerically("<", time.Second), "the cluster has waited")
	e.install(next)
	take()
	o, err := e.repair(want.Release)
	e.Expect(err).NotTo(HaveOccurred())
	waits(o, addonsv1.AddonUpgrading)
	take()
	waits(e.removeOnce(want.Release), addonsv1.AddonRemoving)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.expectNoClaim(memory)
}

// TestAddonIsTooLarge has an add-on take more memory than its cluster may have.
func TestAddonIsTooLarge(t *testing.T) {
	e, ns := alone(t)
	memory := e.withMemory(8<<20, 700_000, 0)
	large := manyObjects("1")
	for i := range 600 {
		large.manifest += configMap(fmt.Sprintf("d%03d", i), "1")
	}
	o := e.settleAs(e.want(ns, large), deliver.ReasonAddonTooLarge)
	e.Expect(o.Message).To(And(ContainSubstring("cluster fleet/a may hold 700000"), ContainSubstring("--memory-per-cluster-mib")))
	e.expectNoClaim(memory)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("c", "1")}))
	e.expectNoClaim(memory)
}

// TestValuesCountInWhatIsKept has add-ons with large values wait for objects that never become ready.
func TestValuesCountInWhatIsKept(t *testing.T) {
	const kept = 3_000_000
	e, ns := alone(t)
	const cluster, spare = 16 << 20, 500_000
	memory := e.withMemory(1<<30, cluster, kept)
	var want deliver.Desired
	for i := range 4 {
		want = e.wantNamed(fmt.Sprint("a", i), ns, chart{version: "1", manifest: configMap(fmt.Sprint("a", i), "x")})
		want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key == 'never'"}}
		withLargeValues(&want)
		e.ensureAs(want, deliver.ReasonWaitingForObjects)
		if usage := memory.Usage(); usage.Claimed > 0 || usage.Cached < min(int64(i+1), 2)*1_000_000 || usage.Cached > kept {
			t.Errorf("after %d add-ons there is %+v", i+1, usage)
		}
	}
	others := memory.Claim(budget.Tenant{Namespace: "fleet", Cluster: "a"}, 0)
	e.Expect(others.Grow(e.ctx, cluster-spare)).To(Succeed())
	e.Expect(e.ensure(want).Reason).To(Equal(deliver.ReasonWaitingForMemory), "what is kept counts while a call has it")
	others.End()
	e.ensureAs(want, deliver.ReasonWaitingForObjects)
	e.d.Forget(e.target.Name)
	e.Expect(memory.Usage()).To(Equal(budget.Usage{}), "nothing is left of a cluster that is forgotten")
}

// withLargeValues gives an add-on values of 1 MB.
func withLargeValues(want *deliver.Desired) {
	render := want.Render
	want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		rendering, err := render(ctx, in)
		rendering.Values = map[string]any{"text": strings.Repeat("x", 1_000_000)}
		return rendering, err
	}
}

// TestRecordsThatAreReadCount has each call that reads a record find less memory than that takes, and then enough.
func TestRecordsThatAreReadCount(t *testing.T) {
	const cluster, spare = 16 << 20, 500_000
	e, ns := alone(t)
	of := e.withMemory(1<<30, cluster, 1)
	want, next := e.want(ns, chart{version: "1", manifest: configMap("c", "1")}), e.want(ns, chart{version: "2", manifest: configMap("c", "2")})
	withLargeValues(&want)
	withLargeValues(&next)
	e.install(want)
	others := of.Claim(budget.Tenant{Namespace: "fleet", Cluster: "a"}, 0)
	e.Expect(others.Grow(e.ctx, cluster-spare)).To(Succeed())
	reads := map[string]func() error{
		"what it holds": func() error { _, _, err := e.d.Holds(e.ctx, e.target, want.Release); return err },
		"a plan": func() error {
			next.Proof = e.proofs.of(want.Release)
			_, err := e.d.Preview(e.ctx, e.target, next, preview.NewComing(nil))
			return err
		},
		"a plan of its removal": func() error {
			_, err := e.d.PreviewRemoval(e.ctx, e.target, want.Release, e.proofs.of(want.Release), preview.NewComing(nil))
			return err
		},
	}
	for name, read := range reads {
		if err := read(); !errors.Is(err, memory.ErrTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.Expect(e.ensure(next).Reason).To(Equal(deliver.ReasonWaitingForMemory))
	others.End()
	for name, read := range reads {
		if err := read(); err != nil || of.Usage().Claimed != 0 {
			t.Errorf("%s: %v, and %+v is left", name, err, of.Usage())
		}
	}
}

// TestCRDsThatAreSkippedCount has a chart bring more CRDs than its cluster may have in memory. They are neither applied nor recorded.
func TestCRDsThatAreSkippedCount(t *testing.T) {
	e, ns := alone(t)
	memory := e.withMemory(8<<20, 700_000, 0)
	for many, reason := range map[int]string{1: "Ready", 300: deliver.ReasonAddonTooLarge} {
		c := chart{version: "1", manifest: configMap("c", "1")}
		for i := range many {
			c.crds += crd(fmt.Sprintf("skipped-%d.example.com", i))
		}
		want := e.wantNamed(fmt.Sprint("a", many), ns, c)
		want.CRDPolicy = addonsv1.CRDPolicySkip
		e.settleAs(want, reason)
		e.expectNoClaim(memory)
	}
}

// TestCRDsOfAResumedInstallationCount has an installation that waits continue after it was forgotten. Its CRDs count as its objects do.
func TestCRDsOfAResumedInstallationCount(t *testing.T) {
	e, ns := alone(t)
	const cluster = 16 << 20
	memory := e.withMemory(1<<30, cluster, 0)
	c := chart{version: "1", manifest: configMap("c", strings.Repeat("x,", 10_000))} // it takes more to parse that than to read the record
	c.crds = strings.Replace(crd(ns+".example.com"), "type: object,", "type: object, properties: {"+strings.Repeat(", p%d: {type: string}", 300)[2:]+"},", 1)
	for i := range 300 {
		c.crds = strings.Replace(c.crds, "p%d", fmt.Sprint("p", i), 1)
	}
	want := e.want(ns, c)
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key == 'never'"}}
	e.reach(want, deliver.ReasonWaitingForObjects)
	kept, parsing := memory.Usage().Cached, (&record.Record{Helm: &helmrelease.Release{Manifest: c.manifest}}).ParsingCost()
	crds, err := record.ParseManifest(c.crds)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(kept).To(BeNumerically(">", object.Weight(crds...)+int64(len(c.crds)+len(c.manifest))), "they count beside the record while they are kept")
	e.d.Forget(e.target.Name)
	others := memory.Claim(budget.Tenant{Namespace: "fleet", Cluster: "a"}, 0)
	e.Expect(others.Grow(e.ctx, cluster-kept-parsing)).To(Succeed(), "of the objects there is a copy besides")
	e.ensureAs(want, deliver.ReasonWaitingForMemory)
	others.End()
	e.ensureAs(want, deliver.ReasonWaitingForObjects)
}

// manyObjects is a chart of which more is kept than may be.
func manyObjects(version string, hooks ...string) chart {
	c := chart{version: version}
	for i := range 60 {
		c.manifest += configMap(fmt.Sprintf("c%02d", i), version+strings.Repeat("x", 3000))
	}
	for _, event := range hooks {
		c.hooks = append(c.hooks, job.Hook{
			Name: event, Kind: "ConfigMap", Path: "demo/" + event, Manifest: configMap(event, version), Events: []string{event},
		})
	}
	return c
}

// TestWhatIsNotReadyTakesLittleMemory has objects and records dropped while they are waited for. They are read again,
// and nothing else is written or asked for.
func TestWhatIsNotReadyTakesLittleMemory(t *testing.T) {
	long.InCI(t)
	for title, tc := range map[string]struct {
		room  int64
		reads int
	}{
		"there is room":    {reads: 0},
		"there is no room": {room: 1, reads: 1},
	} {
		t.Run(title, func(t *testing.T) {
			e := newEnv(t)
			memory := e.withMemory(1<<30, 0, tc.room)
			ns := e.namespace()
			never := func(want deliver.Desired) deliver.Desired {
				want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key == 'never'"}}
				return want
			}
			ensure := func(want deliver.Desired, requests, writes int, why string) deliver.Outcome {
				t.Helper()
				e.meter.reset()
				o := e.ensure(want)
				r, w := e.meter.total()
				e.Expect([]int{r, w}).To(Equal([]int{requests, writes}), why)
				return o
			}
			manifest := func() string {
				found, err := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns))).Last("demo")
				e.Expect(err).NotTo(HaveOccurred())
				return found.(*helmrelease.Release).Manifest
			}
			chart := manyObjects("1", "post-install", "pre-delete")
			want := never(e.want(ns, chart))

			e.ensureAs(want, deliver.ReasonWaitingForObjects)
			time.Sleep(time.Second) // the watch begins
			o := ensure(want, tc.reads, 0, "nothing has changed")
			e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{60, 0}), o.Message)
			e.clock.step(15 * time.Second)
			ensure(want, 2+tc.reads, 1, "the records are listed, and that all was applied is noted")
			e.Expect(manifest()).To(Equal(chart.manifest))

			chart = manyObjects("1.1", "post-install", "pre-delete")
			e.install(e.want(ns, chart))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.get("v1", "ConfigMap", ns, "post-install")).NotTo(BeNil(), "the hook ran")
			next := manyObjects("2")
			e.ensureAs(never(e.want(ns, next)), deliver.ReasonWaitingForObjects)
			late := never(e.want(ns, next))
			late.OnFailure, late.ProgressDeadline = addonsv1.FailurePolicyRollBack, time.Nanosecond
			e.clock.step(time.Minute)
			e.Expect(e.reach(late, deliver.ReasonRolledBack).Revision).To(BeEquivalentTo(4))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "c00")).To(BeNil())
			e.Expect(e.get("v1", "ConfigMap", ns, "pre-delete")).NotTo(BeNil(), "the hook ran")
			e.Expect(memory.Usage()).To(Equal(budget.Usage{}), "nothing is left of an add-on that is removed")
		})
	}
}

// TestRequests holds the number of requests of an add-on with many objects that
// are ready at once, when kinds are known already.
func TestRequests(t *testing.T) {
	const n = 40
	e, ns := alone(t)
	many := func(version, value string) chart {
		c := chart{version: version}
		for i := range n {
			c.manifest += configMap(fmt.Sprintf("c%02d", i), value)
		}
		return c
	}
	warm := e.wantNamed("warm", ns, chart{version: "1", manifest: configMap("warm", "x")})
	e.install(warm)

	measure := func(what string, requests, writes int, f func()) {
		t.Helper()
		e.meter.reset()
		f()
		r, w := e.meter.total()
		t.Logf("%s: %d requests, of them %d writes", what, r, w)
		e.Expect(r).To(BeNumerically("<=", requests), what)
		e.Expect(w).To(BeNumerically("<=", writes), what)
	}
	want := e.want(ns, many("1", "a"))
	// Records and namespace; a write for each object; the record, pending and deployed.
	measure("install", 2+n+2, n+2, func() { e.install(want) })
	measure("unchanged", 1, 0, func() { e.install(want) })
	// LIST; the old record is read twice and written once; one write for each object; the new record.
	measure("upgrade", 1+3+n+2, n+3, func() { e.install(e.want(ns, many("2", "b"))) })
	// As above, but a look at each of the objects that stay as they are in place of a write.
	one := many("3", "b")
	one.manifest = strings.Replace(one.manifest, `key: "b"`, `key: "c"`, 1)
	measure("upgrade of one object", 1+3+n+2, 1+3, func() { e.install(e.want(ns, one)) })

	measure("repair", 2+2*n, n, func() { _, _ = e.repair(want.Release) })
	hooked := e.want(ns, chart{version: "1", manifest: configMap("hooked", "x"), hooks: []job.Hook{
		{Name: "before", Kind: "ConfigMap", Path: "demo/before", Manifest: configMap("before", "x"), Events: []string{"pre-install"}, DeletePolicies: []string{"before-hook-creation", "hook-succeeded"}},
		{Name: "later", Kind: "ConfigMap", Path: "demo/later", Manifest: configMap("later", "x"), Events: []string{"pre-install"}, Weight: 1, DeletePolicies: []string{"hook-succeeded"}},
	}})
	hooked.Name = "hooked"
	// As above; a write and a deletion for each hook's object; the record when they are done.
	measure("hooks", 2+1+2+2*2+1, 1+2+2*2+1, func() { e.install(hooked) })
	e.Expect(e.get("v1", "ConfigMap", ns, "before")).To(BeNil())
	// A look, a deletion and a last look for each object, and two watches.
	measure("remove", 3*n+12, n+4, func() { e.remove(want.Release) })
}

// TestRunningHookTakesLittleMemory drops the record of a hook's run, which doesn't say yet that the hook runs. Its deadline counts from
// its begin all the same.
func TestRunningHookTakesLittleMemory(t *testing.T) {
	e, ns := alone(t)
	memory := e.withMemory(1<<30, 0, 1)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("before", 0, jobText("before", true), []string{"pre-install"})}})
	e.ensureAs(want, deliver.ReasonRunningHook)
	uid := e.get("batch/v1", "Job", ns, "before").GetUID()
	e.clock.step(time.Minute)
	o := e.ensureAs(want, deliver.ReasonRunningHook)
	e.Expect(o.RetryAfter).To(BeNumerically("<=", time.Minute))
	e.Expect(memory.Usage()).To(Equal(budget.Usage{}), "nothing is kept")
	e.clock.step(time.Minute)
	o = e.ensureAs(want, deliver.ReasonHookFailed)
	e.Expect(o.Message).To(ContainSubstring("It is still waited for"))
	e.Expect(e.get("batch/v1", "Job", ns, "before").GetUID()).To(Equal(uid), "it runs once")
}
