// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

func TestNext(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ours := func(status, digest string) record.Summary {
		return record.Summary{Revision: 3, Status: status, Digest: digest, Owned: true, Complete: true, Owner: "a/a", ModifiedAt: now}
	}
	helms := func(status string) record.Summary {
		return record.Summary{Revision: 3, Status: status, ModifiedAt: now}
	}
	rewritten := func(status string, age time.Duration) record.Summary {
		return record.Summary{Revision: 3, Status: status, Owned: true, Owner: "a/a", ModifiedAt: now.Add(-age)}
	}
	by := func(uid types.UID) record.Summary {
		s := ours("deployed", "e")
		s.OwnerUID = uid
		return s
	}
	renew := ours("deployed", "d")
	renew.RenewAt = now
	for name, tc := range map[string]struct {
		records []record.Summary
		policy  addonsv1.AdoptionPolicy
		owner   string
		step    revision.Step
		reason  string
	}{
		"nothing there":                   {step: revision.Begin},
		"deployed":                        {records: []record.Summary{ours("deployed", "d")}, step: revision.Settled},
		"deployed with other inputs":      {records: []record.Summary{ours("deployed", "e")}, step: revision.Begin},
		"a certificate is due":            {records: []record.Summary{renew}, step: revision.Begin},
		"pending":                         {records: []record.Summary{ours("pending-upgrade", "d")}, step: revision.Resume},
		"pending with other inputs":       {records: []record.Summary{ours("pending-upgrade", "e")}, step: revision.Begin},
		"failed":                          {records: []record.Summary{ours("failed", "d")}, step: revision.Resume},
		"being removed":                   {records: []record.Summary{ours("uninstalling", "d")}, step: revision.Begin},
		"of another ClusterAddon":         {records: []record.Summary{ours("deployed", "d")}, owner: "b/b", step: revision.Refuse, reason: revision.ReasonReleaseOwnedByOther},
		"Helm's":                          {records: []record.Summary{helms("deployed")}, step: revision.Refuse, reason: revision.ReasonReleaseExists},
		"Helm's, to be adopted":           {records: []record.Summary{helms("deployed")}, policy: addonsv1.AdoptionPolicyAdopt, step: revision.Begin},
		"Helm's, uninstalled":             {records: []record.Summary{helms("uninstalled")}, step: revision.Begin},
		"Helm upgraded it":                {records: []record.Summary{rewritten("deployed", 0)}, step: revision.Begin},
		"Helm upgrades it at this moment": {records: []record.Summary{rewritten("pending-upgrade", 0)}, step: revision.Refuse, reason: revision.ReasonReleaseLocked},
		"taken over":                      {records: []record.Summary{by("second"), by("first")}, step: revision.Refuse, reason: revision.ReasonReleaseTakenOver},
		"to be taken over":                {records: []record.Summary{by("second"), by("third")}, step: revision.Begin},
		"taken back":                      {records: []record.Summary{by("first"), by("second")}, step: revision.Begin},
		"Helm uninstalls ours":            {records: []record.Summary{rewritten("uninstalling", 0)}, step: revision.Refuse, reason: revision.ReasonReleaseLocked},
		"Helm uninstalls its own":         {records: []record.Summary{helms("uninstalling")}, policy: addonsv1.AdoptionPolicyAdopt, step: revision.Refuse, reason: revision.ReasonReleaseLocked},
		"Helm never finished":             {records: []record.Summary{rewritten("pending-upgrade", time.Hour)}, step: revision.Begin},
	} {
		t.Run(name, func(t *testing.T) {
			want := &revision.Desired{Owner: "a/a", OwnerUID: "first", Adoption: tc.policy, ProgressDeadline: 10 * time.Minute}
			if tc.owner != "" {
				want.Owner = tc.owner
			}
			got := revision.Next(tc.records, "d", want, now)
			reason := ""
			if got.Refusal != nil {
				reason = got.Refusal.Reason
			}
			if got.Step != tc.step || reason != tc.reason {
				t.Errorf("got %+v", got)
			}
		})
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
		made := &revision.Made{Record: &record.Record{State: &record.State{}}, Inventory: inventory, Objects: wanted}
		b.Run(archive, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				made.Previous, err = record.ParseManifest(release.Manifest)
				must.Succeed(b, err)
				if same := made.SameAs(""); len(same) != len(wanted) {
					b.Fatalf("%d of %d objects are the same", len(same), len(wanted))
				}
			}
		})
	}
}
