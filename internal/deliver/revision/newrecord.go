// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
)

// newRecord is the record of a rendering, pending.
func (m *Maker) newRecord(ctx context.Context, in *Rendering, revision int) (*record.Record, error) {
	of := &chart.Chart{}
	if err := json.Unmarshal(in.Chart, of); err != nil {
		return nil, fmt.Errorf("reading the chart's metadata and values: %w", err)
	}
	status, description := helmcommon.StatusPendingInstall, "Initial install underway"
	now := m.Clock.Now()
	first := now
	if m.Past.IsUpgrade(nil) {
		status, description = helmcommon.StatusPendingUpgrade, "Preparing upgrade"
	}
	if len(m.Past.Records) > 0 {
		// It was loaded a moment ago, to inherit its inventory.
		if old, err := m.Past.Store.Load(ctx, m.Past.Records[0]); err == nil && !old.Helm.Info.FirstDeployed.IsZero() {
			first = old.Helm.Info.FirstDeployed
		}
	}
	summary := m.newSummary(revision, status)
	summary.Digest = in.Digest
	summary.Chart, summary.Version, summary.AppVersion = in.Name, in.Version, in.AppVersion
	summary.Artifact = m.Want.Artifact
	summary.FactsUsed, summary.RenewAt = in.FactsUsed, keptvalues.RenewAt(in.Generated)
	rec := &record.Record{
		Summary: summary,
		Helm: &helmrelease.Release{
			Name: m.Want.Name, Namespace: m.Want.Namespace, Version: revision,
			Info: &helmrelease.Info{
				FirstDeployed: first, LastDeployed: now, Status: status, Description: description, Notes: in.Notes,
			},
			Chart:       of,
			Config:      in.Values,
			Manifest:    in.Manifest,
			Hooks:       helmHooks(in.Hooks),
			ApplyMethod: string(helmrelease.ApplyMethodServerSideApply),
		},
		State:       &record.State{Format: 1, Adopted: m.Past.Adopted, Generated: in.Generated, Sensitive: m.Past.Hidden.Known()},
		CRDs:        in.CRDs,
		WatchFilter: m.Want.WatchFilter,
	}
	if rec.Helm.Manifest == "" {
		var err error
		if rec.Helm.Manifest, err = record.FormatManifest(in.Objects); err != nil {
			return nil, err
		}
	}
	rec.Seal(rand.Text())
	return rec, nil
}

// newSummary returns what the record of a new revision says whatever it is made of.
func (m *Maker) newSummary(number int, status helmcommon.Status) record.Summary {
	s := record.Summary{
		Release: m.Want.Release, Revision: number, Status: status.String(), Owner: m.Want.Owner, OwnerUID: m.Want.OwnerUID,
		Previous: m.Past.DeployedProof(), Terms: m.Want.Terms, StackRevision: m.Want.StackRevision,
	}
	s.Postconditions = "" // until they hold
	return s
}

func helmHooks(hooks []job.Hook) []*helmrelease.Hook {
	list := make([]*helmrelease.Hook, 0, len(hooks))
	for _, h := range hooks {
		made := &helmrelease.Hook{Name: h.Name, Kind: h.Kind, Path: h.Path, Manifest: h.Manifest, Weight: h.Weight}
		for _, e := range h.Events {
			made.Events = append(made.Events, helmrelease.HookEvent(e))
		}
		for _, p := range h.DeletePolicies {
			made.DeletePolicies = append(made.DeletePolicies, helmrelease.HookDeletePolicy(p))
		}
		list = append(list, made)
	}
	return list
}

// copyOf returns the record of an older revision as a new one, pending. It is the rollback of the failed one, unless that
// is nil.
func (m *Maker) copyOf(old *record.Record, number int, failed *record.Summary) *record.Record {
	status := helmcommon.StatusPendingUpgrade
	if failed != nil {
		status = helmcommon.StatusPendingRollback
	}
	release, info := *old.Helm, *old.Helm.Info
	info.Status, info.LastDeployed = status, m.Clock.Now()
	info.Description = fmt.Sprintf("Rollback to %d", old.Revision)
	release.Version, release.Info = number, &info
	summary := m.newSummary(number, status)
	summary.Digest, summary.Spec, summary.RenewAt, summary.FactsUsed = old.Digest, old.Spec, old.RenewAt, old.FactsUsed
	summary.Inputs, summary.Optional = old.Inputs, old.Optional
	summary.Chart, summary.Version, summary.AppVersion = old.Chart, old.Version, old.AppVersion
	summary.Artifact, summary.ArtifactVersion = old.Artifact, old.ArtifactVersion
	if failed != nil {
		summary.FactsUsed = failed.FactsUsed // what is wanted is compared with what failed
		summary.RolledBack, summary.Failure = failed.Digest, failed.Failure
	}
	rec := &record.Record{
		Summary: summary, Helm: &release, WatchFilter: m.Want.WatchFilter,
		State: &record.State{Format: 1, Generated: old.State.Generated, Sensitive: old.State.Sensitive},
	}
	rec.Seal(rand.Text())
	return rec
}
