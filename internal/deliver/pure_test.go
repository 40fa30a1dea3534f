// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

func TestNext(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ours := func(status, digest string) Summary {
		return Summary{Revision: 3, Status: status, Digest: digest, Owned: true, Complete: true, Owner: "a/a", ModifiedAt: now}
	}
	helms := func(status string) Summary { return Summary{Revision: 3, Status: status, ModifiedAt: now} }
	rewritten := func(status string, age time.Duration) Summary {
		return Summary{Revision: 3, Status: status, Owned: true, Owner: "a/a", ModifiedAt: now.Add(-age)}
	}
	by := func(uid types.UID) Summary {
		s := ours("deployed", "e")
		s.OwnerUID = uid
		return s
	}
	renew := ours("deployed", "d")
	renew.RenewAt = now
	for name, tc := range map[string]struct {
		records []Summary
		policy  addonsv1.AdoptionPolicy
		owner   string
		step    step
		reason  string
	}{
		"nothing there":                   {step: stepBegin},
		"deployed":                        {records: []Summary{ours("deployed", "d")}, step: stepSettled},
		"deployed with other inputs":      {records: []Summary{ours("deployed", "e")}, step: stepBegin},
		"a certificate is due":            {records: []Summary{renew}, step: stepBegin},
		"pending":                         {records: []Summary{ours("pending-upgrade", "d")}, step: stepResume},
		"pending with other inputs":       {records: []Summary{ours("pending-upgrade", "e")}, step: stepBegin},
		"failed":                          {records: []Summary{ours("failed", "d")}, step: stepResume},
		"being removed":                   {records: []Summary{ours("uninstalling", "d")}, step: stepBegin},
		"of another ClusterAddon":         {records: []Summary{ours("deployed", "d")}, owner: "b/b", step: stepRefuse, reason: ReasonReleaseOwnedByOther},
		"Helm's":                          {records: []Summary{helms("deployed")}, step: stepRefuse, reason: ReasonReleaseExists},
		"Helm's, to be adopted":           {records: []Summary{helms("deployed")}, policy: addonsv1.AdoptionPolicyAdopt, step: stepBegin},
		"Helm's, uninstalled":             {records: []Summary{helms("uninstalled")}, step: stepBegin},
		"Helm upgraded it":                {records: []Summary{rewritten("deployed", 0)}, step: stepBegin},
		"Helm upgrades it at this moment": {records: []Summary{rewritten("pending-upgrade", 0)}, step: stepRefuse, reason: ReasonReleaseLocked},
		"taken over":                      {records: []Summary{by("second"), by("first")}, step: stepRefuse, reason: ReasonReleaseTakenOver},
		"to be taken over":                {records: []Summary{by("second"), by("third")}, step: stepBegin},
		"taken back":                      {records: []Summary{by("first"), by("second")}, step: stepBegin},
		"Helm uninstalls ours":            {records: []Summary{rewritten("uninstalling", 0)}, step: stepRefuse, reason: ReasonReleaseLocked},
		"Helm uninstalls its own":         {records: []Summary{helms("uninstalling")}, policy: addonsv1.AdoptionPolicyAdopt, step: stepRefuse, reason: ReasonReleaseLocked},
		"Helm never finished":             {records: []Summary{rewritten("pending-upgrade", time.Hour)}, step: stepBegin},
	} {
		t.Run(name, func(t *testing.T) {
			want := &Desired{Owner: "a/a", OwnerUID: "first", Adoption: tc.policy, ProgressDeadline: 10 * time.Minute}
			if tc.owner != "" {
				want.Owner = tc.owner
			}
			got := next(tc.records, "d", want, now)
			if got.step != tc.step || got.reason != tc.reason {
				t.Errorf("got %+v", got)
			}
			if (got.message != "") != (tc.reason != "") {
				t.Errorf("message %q", got.message)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	for statuses, want := range map[string]bool{
		"": false, "failed": false, "failed superseded": true, "deployed": true, "pending-upgrade deployed": true,
		"uninstalled deployed": false, "failed uninstalling superseded": false,
	} {
		var records []Summary
		for _, s := range strings.Fields(statuses) {
			records = append(records, Summary{Status: s})
		}
		if got := record.Installed(records); got != want {
			t.Errorf("%q: %t", statuses, got)
		}
	}
}

func TestHookOrder(t *testing.T) {
	h := func(kind, name string, weight int, events ...helmrelease.HookEvent) *helmrelease.Hook {
		return &helmrelease.Hook{Kind: kind, Name: name, Weight: weight, Events: events}
	}
	got := hooksFor([]*helmrelease.Hook{
		h("Job", "z", -5, "pre-install"), h("Job", "b", 0, "pre-install", "pre-upgrade"), h("Job", "a", 0, "pre-install"),
		h("ServiceAccount", "b", 0, "pre-install"), h("Job", "other", 0, "post-install"), h("Job", "last", 10, "pre-install"),
	}, helmrelease.HookPreInstall)
	var names []string
	for _, hook := range got {
		names = append(names, hook.Kind+" "+hook.Name)
	}
	if d := cmp.Diff([]string{"Job z", "Job a", "ServiceAccount b", "Job b", "Job last"}, names); d != "" {
		t.Error(d)
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	now := time.Unix(0, 0)
	var got []time.Duration
	for range 7 {
		o := b.fail(now, "d", Outcome{Message: "m"})
		got = append(got, o.RetryAfter)
		if waiting, early := b.waiting(now.Add(o.RetryAfter-time.Second), "d"); !early || waiting.RetryAfter != time.Second {
			t.Errorf("waiting: %+v %t", waiting, early)
		}
		if _, early := b.waiting(now, "other"); early {
			t.Error("other inputs don't wait")
		}
		now = now.Add(o.RetryAfter)
		if _, early := b.waiting(now, "d"); early {
			t.Error("it is time")
		}
	}
	s := time.Second
	if d := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}, got); d != "" {
		t.Error(d)
	}
}

// BenchmarkPlan measures what tells which objects of an upgrade are to be applied: none of these.
func BenchmarkPlan(b *testing.B) {
	for _, archive := range realdata.Measured {
		release, err := helmtemplate.Of(realdata.Read(b, "charts", archive), nil, "v1.36.3")
		must.Succeed(b, err)
		wanted, err := record.ParseManifest(release.Manifest)
		must.Succeed(b, err)
		var inventory []record.Entry
		for _, o := range wanted {
			e := record.EntryOf(o)
			e.UID, e.Fields = "known", drift.Fields(1)
			inventory = append(inventory, e)
		}
		made := &madeRevision{rec: &record.Record{State: &record.State{}}, inventory: inventory, objects: wanted}
		b.Run(archive, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				made.previous, err = record.ParseManifest(release.Manifest)
				must.Succeed(b, err)
				if same := made.unchanged(""); len(same) != len(wanted) {
					b.Fatalf("%d of %d objects are the same", len(same), len(wanted))
				}
			}
		})
	}
}
