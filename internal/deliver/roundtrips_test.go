// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// within has the requests of a test end after a while, where one waits for another that never begins.
func (e *env) within(of time.Duration) {
	ctx, cancel := context.WithTimeout(e.ctx, of)
	e.t.Cleanup(cancel)
	e.ctx = ctx
}

// history returns the status that Helm shows of each revision, the oldest first.
func (e *env) history(of deliver.Release) (all []string) {
	store := &record.Store{Client: e.target.Client, Release: of, Clock: e.clock}
	summaries, err := store.List(e.ctx)
	e.Expect(err).NotTo(HaveOccurred())
	for _, s := range slices.Backward(summaries) {
		rec, err := store.Load(e.ctx, s)
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(rec.IsIntact()).To(BeTrue())
		e.Expect(rec.Helm.Info.Status.String()).To(Equal(s.Status))
		all = append(all, fmt.Sprint(s.Revision, " ", s.Status))
	}
	return all
}

func isListOfRecords(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/secrets") && r.URL.Query().Has("labelSelector")
}

// TestUpgradeReadsTheRecordOnce reads the previous record while the records are listed, and not again to mark it superseded.
func TestUpgradeReadsTheRecordOnce(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	previous := e.records(ns)[deliver.Release{Namespace: ns, Name: "demo"}].SecretName
	e.restart() // which knows nothing of before
	want := e.want(ns, configMaps("2", "two"))
	want.Newest, want.Seen = previous, e.seen(want.Release)
	reads := 0
	e.meter.beside(isListOfRecords, func(r *http.Request) bool {
		is := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+previous)
		if is {
			reads++
		}
		return is
	})
	e.within(2 * time.Minute)
	e.install(want)
	e.Expect(reads).To(Equal(1))
	e.Expect(e.get("v1", "Secret", ns, previous).GetLabels()).To(HaveKeyWithValue("status", "superseded"))
	e.Expect(e.history(want.Release)).To(Equal([]string{"1 superseded", "2 deployed"}))
}

// TestUpgradeExpectsAnotherRecord has a caller that doesn't know of the newest record yet.
func TestUpgradeExpectsAnotherRecord(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	first := e.records(ns)[deliver.Release{Namespace: ns, Name: "demo"}].SecretName
	e.install(e.want(ns, configMaps("2", "two")))
	e.restart()
	want := e.want(ns, configMaps("3", "three"))
	want.Newest = first
	e.install(want)
	e.Expect(e.history(want.Release)).To(Equal([]string{"1 superseded", "2 superseded", "3 deployed"}))
	e.restart()
	want = e.want(ns, configMaps("4", "four"))
	want.Newest = "no-such-record"
	e.install(want)
	e.Expect(e.history(want.Release)).To(Equal([]string{"1 superseded", "2 superseded", "3 superseded", "4 deployed"}))
}

// TestRepairLooksOnce reads the record while the records are listed, and asks for the dry run while it looks at an object which
// a watch has shown to differ.
func TestRepairLooksOnce(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	of := deliver.Repair{Release: want.Release, Newest: e.records(ns)[want.Release].SecretName, Seen: func(deliver.ObjectKey) (drift.Fields, bool) { return 1, true }}
	change := func() { e.edit("somebody", e.get("v1", "ConfigMap", ns, "settings"), `{"data":{"key":"other"}}`) }
	isOf := func(name string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+name)
		}
	}
	change()
	e.within(2 * time.Minute)
	e.meter.beside(isListOfRecords, isOf(of.Newest))
	e.expectRepaired(e.look(of))
	change()
	e.meter.beside(isOf("settings"), func(r *http.Request) bool { return r.Method == http.MethodPatch && r.URL.Query().Has("dryRun") })
	found := e.look(of)
	e.Expect(changesOf(found)).To(Equal([]string{"settings .data.key"}))
	e.expectRepaired(found)
}

// TestRepairOfAnObjectMadeAgain asks for a dry run of an object that another one has replaced since.
func TestRepairOfAnObjectMadeAgain(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	made := e.get("v1", "ConfigMap", ns, "settings")
	e.delete(made.DeepCopy())
	made.SetUID("")
	made.SetResourceVersion("")
	made.SetManagedFields(nil)
	e.Expect(e.target.Client.Create(e.ctx, made)).To(Succeed())
	e.edit("somebody", made, `{"data":{"key":"other"}}`)
	of := deliver.Repair{Release: want.Release, Adoption: "Adopt", Seen: func(deliver.ObjectKey) (drift.Fields, bool) { return 1, true }}
	e.expectRepaired(e.look(of))
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object).To(HaveKeyWithValue("data", HaveKeyWithValue("key", "x")))
}

// TestAnswersAreMetadata has the API server send back nothing of what records and objects without a status hold, unless a check
// reads them.
func TestAnswersAreMetadata(t *testing.T) {
	e, ns := beside(t)
	var mu sync.Mutex
	answered := map[string]bool{} // by the path's end, whether the whole object was
	target := e.through(func(next http.RoundTripper) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || r.Method == http.MethodGet || r.Method == http.MethodDelete {
				return resp, err
			}
			return rewritten(resp, func(object map[string]any) {
				mu.Lock()
				defer mu.Unlock()
				_, whole := object["data"]
				answered[r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = whole
			})
		}
	})
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x") + configMap("b", "x")})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "b", Expression: "self.data.key == 'x'"}}
	e.drive(func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, target, want) },
		func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonReady })
	e.Expect(answered).To(Equal(map[string]bool{
		"POST secrets": false, "PATCH a": false, "PATCH b": true, "PUT sh.helm.release.v1.demo.v1": false,
	}))
}
