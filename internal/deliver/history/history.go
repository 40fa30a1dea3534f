// SPDX-License-Identifier: Apache-2.0

// Package history reads the records of a release, and tells which of them are proven.
package history

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// A record is a claim: whoever may write Secrets in its namespace can make or change one. So its proof is
// kept in the management cluster, and given to each call. Nothing is applied, run, repaired or removed by a
// record that isn't proven. The newest record of a wanted add-on may lack the proof for a good reason. Its
// writer crashed before the proof was kept, or the cluster came from another management cluster. Then the
// revision is made once more. If the record has just that, it is proven. Else it is left behind by the next
// revision, which takes over those objects alone that the API server shows to be the add-on's.

// History is what a call knows of a release's records.
type History struct {
	Store  *record.Store
	Scope  *object.Scope
	Memory *memory.Claim
	Hidden *hidden.Secrets
	// Running are the runs of hooks that a record doesn't have yet.
	Running HookRuns

	Records []record.Summary // the newest first
	Proof   string           // of the record that was written last, "" for none
	Adopted *record.AdoptedRelease
}

// HookRuns are the runs of hooks, as they are after a version of the record was written.
type HookRuns struct {
	Version string
	Runs    []record.HookRun
}

// List reads which records there are.
func (h *History) List(ctx context.Context) error { return h.ListAnd(ctx, "") }

// ListAnd reads which records there are, and at the same time the one that is expected to be the newest: see [record.Store.ListAnd].
func (h *History) ListAnd(ctx context.Context, expected string) (err error) {
	h.Records, err = h.Store.ListAnd(ctx, expected)
	return err
}

// IsProven reports whether a record is the one that the proof is of, or one that was deployed before that: each record
// names the proof of the one before.
func (h *History) IsProven(s record.Summary) bool {
	proof := h.Proof
	for _, known := range h.Records {
		if s.IsProvenBy(proof) {
			return true
		}
		if known.IsProvenBy(proof) {
			proof = known.Previous
		}
	}
	return s.IsProvenBy(proof)
}

// Believes reports whether a record is proven with what it holds.
func (h *History) Believes(rec *record.Record) bool { return h.IsProven(rec.Summary) && rec.IsIntact() }

// Load reads a record.
func (h *History) Load(ctx context.Context, s record.Summary) (*record.Record, error) {
	rec, err := h.Store.Load(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := h.Memory.Spare(ctx, rec.ParsingCost()); err != nil {
		return nil, err
	}
	if rec.ResourceVersion == h.Running.Version {
		rec.State.Hooks = slices.Clone(h.Running.Runs)
	}
	h.Hidden.LearnRecord(rec)
	if rec.State != nil && rec.State.Adopted != nil {
		h.Adopted = rec.State.Adopted
	}
	return rec, nil
}

// Manifest returns the objects of a record's manifest, as they are to be applied, and how much memory they take, in bytes.
func (h *History) Manifest(ctx context.Context, rec *record.Record) (_ []*unstructured.Unstructured, weight int64, _ error) {
	objects, err := rec.Manifest()
	if err != nil {
		return nil, 0, err
	}
	took := 2 * object.Weight(objects...)
	if err := h.Memory.Hold(ctx, took); err != nil {
		return nil, 0, err
	}
	objects, err = h.Scope.Prepare(objects) // they have labels besides
	weight = object.Weight(objects...)
	return objects, weight, errors.Join(err, h.Memory.Hold(ctx, weight-took))
}

// IsUpgrade reports whether a revision, or the next one if it is nil, follows one that was deployed, be it of another release.
func (h *History) IsUpgrade(rec *record.Record) bool {
	older := h.Records
	if rec != nil {
		older = slices.DeleteFunc(slices.Clone(older), func(s record.Summary) bool { return s.Revision >= rec.Revision })
	}
	return h.Adopted != nil || record.Installed(older)
}

// Next returns the number of the revision that follows the records.
func (h *History) Next() int {
	if len(h.Records) == 0 {
		return 1
	}
	return h.Records[0].Revision + 1
}

// DeployedProof returns the proof of the last revision that was deployed, "" if that isn't proven.
func (h *History) DeployedProof() string {
	i := slices.IndexFunc(h.Records, func(s record.Summary) bool { return s.Status == record.StatusDeployed })
	if i < 0 || !h.IsProven(h.Records[i]) {
		return ""
	}
	return h.Records[i].Proof()
}
