// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/together"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// several are add-ons of one ConfigMap each in a namespace, which one reconcile installs.
func (e *env) several(ns string, n int) (all []deliver.Desired) {
	var releases []deliver.Release
	for i := range n {
		want := e.wantNamed(fmt.Sprint("addon-", i), ns, chart{version: "1", manifest: configMap(fmt.Sprint("of-", i), "one")})
		all, releases = append(all, want), append(releases, want.Release)
	}
	shared := together.New(releases)
	for i := range all {
		all[i].Installs = shared
	}
	return all
}

// ensureAll calls Ensure once for each add-on, at the same time.
func (e *env) ensureAll(all []deliver.Desired) []deliver.Outcome {
	outcomes, group := make([]deliver.Outcome, len(all)), sync.WaitGroup{}
	for i, want := range all {
		group.Go(func() {
			var err error
			if outcomes[i], err = e.d.Ensure(e.ctx, e.target, want); err != nil {
				e.t.Error(err)
			}
		})
	}
	group.Wait()
	return outcomes
}

// TestInstallsAskOnce installs add-ons beside each other into a namespace that isn't there.
func TestInstallsAskOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.clock.stand()
	ns := fmt.Sprint("asked-once-", time.Now().UnixNano())
	for range 2 { // the second time into a namespace that is there
		all := e.several(ns, 12)
		e.meter.reset()
		e.meter.beside(isListOfRecords, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/namespaces/"+ns) })
		for _, o := range e.ensureAll(all) {
			e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), "%+v", o)
		}
		e.Expect(e.meter.readsOf("/secrets")).To(Equal(1), "the records of all are listed once")
		e.Expect(e.meter.readsOf("/namespaces/"+ns)).To(Equal(1), "the namespace is looked at once")
		for _, want := range all {
			e.removed(want.Release)
		}
	}
}

// TestInstallsFindHelmsReleases has releases of Helm in the namespace: one that was there before the list, and one that Helm makes after
// it. Neither is taken over.
func TestInstallsFindHelmsReleases(t *testing.T) {
	e, ns := beside(t)
	e.clock.stand()
	all := e.several(ns, 3)
	e.helmHas(all[0].Release, true)
	e.Expect(e.ensure(all[1]).Phase).To(Equal(addonsv1.AddonReady))
	e.helmHas(all[2].Release, false)
	e.ensureAs(all[0], deliver.ReasonReleaseExists)
	_, err := e.d.Ensure(e.ctx, e.target, all[2])
	e.Expect(err).To(HaveOccurred(), "another write came first")
	all[2].Installs = nil
	e.ensureAs(all[2], deliver.ReasonReleaseExists)
}

// TestListOfInstallsIsOld has an add-on begin long after the list: it lists its records by itself.
func TestListOfInstallsIsOld(t *testing.T) {
	e, ns := beside(t)
	all := e.several(ns, 2)
	e.Expect(e.ensure(all[0]).Phase).To(Equal(addonsv1.AddonReady))
	e.helmHas(all[1].Release, true)
	e.clock.step(time.Minute)
	e.ensureAs(all[1], deliver.ReasonReleaseExists)
}

// TestInstallsIntoANamespaceThatIsMissing has an add-on that may not make the namespace come first.
func TestInstallsIntoANamespaceThatIsMissing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	all := e.several(fmt.Sprint("missing-", time.Now().UnixNano()), 2)
	all[0].CreateNamespace = false
	e.ensureAs(all[0], object.ReasonNamespaceMissing)
	e.Expect(e.ensure(all[1]).Phase).To(Equal(addonsv1.AddonReady))
}

// TestInstallYields has another add-on be able to go on while objects are applied: the call ends after the wave, and the next one continues.
func TestInstallYields(t *testing.T) {
	e, ns := beside(t)
	waits := e.wantNamed("waits", ns, chart{version: "1", manifest: configMap("kept", "one"), hooks: []job.Hook{hook("migrate", 0, jobText("migrate", true), []string{"pre-install"})}})
	e.ensureAs(waits, deliver.ReasonRunningHook)

	want := e.want(ns, chart{version: "1", manifest: configMap("first", "one") + deployment("third") +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: second}\nspec: {ports: [{port: 80}]}\n"})
	woken := e.d.Woken(e.target.Name)
	e.Expect(woken()).To(BeFalse())
	want.Yields = func() bool { return true }
	for i := range 2 {
		o := e.ensureAs(want, deliver.ReasonWaitingForObjects)
		e.Expect(o.Message).To(HavePrefix(fmt.Sprint(2 - i)))
	}
	e.Expect(e.get("v1", "Service", ns, "second")).NotTo(BeNil())
	e.Expect(e.get("apps/v1", "Deployment", ns, "third")).To(BeNil())
	e.edit("somebody", e.get("batch/v1", "Job", ns, "migrate"), `{"spec":{"suspend":false}}`)
	e.Eventually(woken).WithTimeout(time.Minute).Should(BeTrue(), "the hook's end")
	want.Yields = e.d.Woken(e.target.Name)
	e.install(want)
	e.install(waits)
}

// TestInstallsAfterAFailure has the list fail. The next reconcile lists again.
func TestInstallsAfterAFailure(t *testing.T) {
	e, ns := beside(t)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	all := e.several(ns, 2)
	_, err := e.d.Ensure(ctx, e.target, all[0])
	e.Expect(err).To(HaveOccurred())
	for _, want := range e.several(ns, 2) {
		e.Expect(e.ensure(want).Phase).To(Equal(addonsv1.AddonReady))
	}
}

// readsOf returns how often a path that ends so was read since the meter was reset.
func (m *meter) readsOf(path string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, read := range m.reads {
		if strings.HasSuffix(read, path) {
			n++
		}
	}
	return n
}

// helmHas installs a release with Helm. It may have lost its first record, as Helm keeps the newest ones alone.
func (e *env) helmHas(of deliver.Release, trimmed bool) {
	e.t.Helper()
	c := theirChart("1", configMap("theirs-"+of.Name, "theirs"))
	e.helmInstalls(of, of.Namespace, c)
	if !trimmed {
		return
	}
	for range 2 {
		e.helmUpgrades(of, c, func(u *action.Upgrade) { u.MaxHistory = 1 })
	}
	e.Expect(e.get("v1", "Secret", of.Namespace, record.SecretName(of.Name, 1))).To(BeNil())
}
