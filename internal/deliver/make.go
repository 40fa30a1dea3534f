// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/generated"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// madeRevision is one that isn't recorded yet.
type madeRevision struct {
	rec           *record.Record
	inventory     []record.Entry               // of the revisions before
	crds, objects []*unstructured.Unstructured // as they are to be applied
	previous      []*unstructured.Unstructured // of the revision before, as they would be; nil if they can't be read
	isUnasked     bool                         // the revision before is of the same chart, values and spec
}

// make renders a revision that follows the records. It takes the generated values from the revision
// before if none are given.
func (r revisionMaker) make(ctx context.Context, number int, generated map[string]string) (*madeRevision, error) {
	inventory, inherited, err := r.inherit(ctx)
	if err != nil {
		return nil, err
	}
	isNew := generated == nil && inherited == nil
	generated, found, err := r.inheritOthers(ctx, generated, &heritage{release: r.release, objects: inventory, values: inherited})
	if err != nil {
		return nil, err
	}
	isUpgrade := r.upgrading() || len(r.records) == 0 && number > 1 // those before may have been trimmed
	input := RenderInput{Revision: number, Upgrade: isUpgrade, Generated: generated}
	if cluster := (&reader{revisionMaker: r, inventory: found}); len(cluster.inventory) > 0 {
		input.Lookup = cluster.lookup
		if len(inventory) > 0 && isNew && (len(r.records) == 0 || !r.records[0].Complete) {
			input.Live = cluster.live
		}
	}
	rendering, err := r.want.Render(ctx, input)
	if err != nil {
		return nil, r.renderFailed(err)
	}
	weight := object.Weight(rendering.Objects...)
	if err := r.memory.hold(ctx, 2*(weight+object.Weight(rendering.CRDs...))); err != nil { // with the copies that are applied
		return nil, err
	}
	removable := slices.DeleteFunc(slices.Clone(inventory), func(e record.Entry) bool { return e.CRD })
	if len(rendering.Objects) == 0 && len(removable) > 0 { // an empty rendering removes nothing
		return nil, r.refuse(ReasonEmptyRendering, fmt.Sprintf(
			"Beside CRDs of crds/ and hooks, the chart renders nothing with these values, and %d objects are installed. Nothing was removed. To remove them, take the add-on out of its stack",
			len(removable)))
	}
	if r.want.CRDPolicy == addonsv1.CRDPolicySkip {
		rendering.CRDs = nil
	}
	made := &madeRevision{inventory: inventory}
	if check, ok := r.checks.Unmatched(slices.Concat(rendering.Objects, rendering.CRDs)); ok {
		return nil, r.refuse(ReasonReadinessInvalid, fmt.Sprintf(
			"A readiness check is for %s %s %s, which the chart doesn't have", check.APIVersion, check.Kind, check.Name))
	}
	if made.crds, made.objects, err = r.scope.PrepareBoth(rendering.CRDs, rendering.Objects); err != nil {
		return nil, err
	}
	kept, err := r.keepPodAnnotations(ctx, rendering, made)
	if err != nil {
		return nil, err
	}
	if made.rec, err = r.newRecord(ctx, rendering, number); err != nil {
		return nil, err
	}
	made.rec.Otherwise = message.List(kept, ", ", message.Few)
	if err := r.memory.hold(ctx, int64(len(made.rec.Helm.Manifest))-weight); err != nil {
		return nil, err
	}
	return made, r.memory.spares(ctx, made.rec.ParsingCost())
}

// renderFailed returns the outcome that stops the call, if the error is one of rendering or of the source.
func (r revisionMaker) renderFailed(err error) error {
	e, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	phase := addonsv1.AddonFailed
	if e.Wait {
		phase = addonsv1.AddonPending
	}
	if e.RetryAfter > 0 { // the source keeps its own backoff, which all clusters share
		o := r.refusal(phase, e.Reason, e.Error())
		o.RetryAfter = e.RetryAfter
		return &stopped{o}
	}
	return r.refuseAs(phase, e.Reason, e.Error())
}

// newRecord is the record of a rendering, pending.
func (r revisionMaker) newRecord(ctx context.Context, in *Rendering, revision int) (*record.Record, error) {
	of, err := recordedChart(in)
	if err != nil {
		return nil, err
	}
	status, description := helmcommon.StatusPendingInstall, "Initial install underway"
	now := r.now()
	first := now
	if r.upgrading() {
		status, description = helmcommon.StatusPendingUpgrade, "Preparing upgrade"
	}
	if len(r.records) > 0 {
		// It was loaded a moment ago, to inherit its inventory.
		if old, err := r.s.store.Load(ctx, r.records[0]); err == nil && !old.Helm.Info.FirstDeployed.IsZero() {
			first = old.Helm.Info.FirstDeployed
		}
	}
	summary := r.newSummary(revision, status)
	summary.Digest = in.Digest
	summary.Chart, summary.Version, summary.AppVersion = in.Name, in.Version, in.AppVersion
	summary.Artifact = r.want.Artifact
	summary.FactsUsed, summary.RenewAt = in.FactsUsed, generated.RenewAt(in.Generated)
	rec := &record.Record{
		Summary: summary,
		Helm: &helmrelease.Release{
			Name: r.release.Name, Namespace: r.release.Namespace, Version: revision,
			Info: &helmrelease.Info{
				FirstDeployed: first, LastDeployed: now, Status: status, Description: description, Notes: in.Notes,
			},
			Chart:       of,
			Config:      in.Values,
			Manifest:    in.Manifest,
			Hooks:       helmHooks(in.Hooks),
			ApplyMethod: string(helmrelease.ApplyMethodServerSideApply),
		},
		State:       &record.State{Format: 1, Adopted: r.adopted, Generated: in.Generated, Sensitive: r.hidden.known},
		CRDs:        in.CRDs,
		WatchFilter: r.want.WatchFilter,
	}
	if rec.Helm.Manifest == "" {
		if rec.Helm.Manifest, err = record.FormatManifest(in.Objects); err != nil {
			return nil, err
		}
	}
	rec.Seal(rand.Text())
	return rec, nil
}

// recordedChart returns what the record has of the chart: all that `helm upgrade` and `helm rollback` need of it.
func recordedChart(in *Rendering) (*chart.Chart, error) {
	if len(in.Metadata) == 0 {
		return &chart.Chart{Metadata: &chart.Metadata{Name: in.Name, Version: in.Version, AppVersion: in.AppVersion, APIVersion: chart.APIVersionV2}}, nil
	}
	of := &chart.Chart{}
	if err := errors.Join(json.Unmarshal(in.Metadata, &of.Metadata), json.Unmarshal(in.ChartValues, &of.Values)); err != nil {
		return nil, fmt.Errorf("reading the chart's metadata and values: %w", err)
	}
	return of, nil
}

// newSummary returns what the record of a new revision says whatever it is made of.
func (r revisionMaker) newSummary(revision int, status helmcommon.Status) record.Summary {
	s := record.Summary{
		Release: r.release, Revision: revision, Status: status.String(), Owner: r.want.Owner, OwnerUID: r.want.OwnerUID,
		Previous: r.previousProof(), Terms: r.want.Terms, StackRevision: r.want.StackRevision,
	}
	s.Postconditions = "" // until they hold
	return s
}

// previousProof returns the proof of the last revision that was deployed, "" if that isn't proven.
func (r revisionMaker) previousProof() string {
	i := slices.IndexFunc(r.records, func(s Summary) bool { return s.Status == StatusDeployed })
	if i < 0 || !r.isProven(r.records[i]) {
		return ""
	}
	return r.records[i].Proof()
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
func (r revisionMaker) copyOf(old *record.Record, number int, failed *Summary) *record.Record {
	status := helmcommon.StatusPendingUpgrade
	if failed != nil {
		status = helmcommon.StatusPendingRollback
	}
	release, info := *old.Helm, *old.Helm.Info
	info.Status, info.LastDeployed = status, r.now()
	info.Description = fmt.Sprintf("Rollback to %d", old.Revision)
	release.Version, release.Info = number, &info
	summary := r.newSummary(number, status)
	summary.Digest, summary.Spec, summary.RenewAt, summary.FactsUsed = old.Digest, old.Spec, old.RenewAt, old.FactsUsed
	summary.Inputs, summary.Optional = old.Inputs, old.Optional
	summary.Chart, summary.Version, summary.AppVersion = old.Chart, old.Version, old.AppVersion
	summary.Artifact, summary.ArtifactVersion = old.Artifact, old.ArtifactVersion
	if failed != nil {
		summary.FactsUsed = failed.FactsUsed // what is wanted is compared with what failed
		summary.RolledBack, summary.Failure = failed.Digest, failed.Failure
	}
	rec := &record.Record{
		Summary: summary, Helm: &release, WatchFilter: r.want.WatchFilter,
		State: &record.State{Format: 1, Generated: old.State.Generated, Sensitive: old.State.Sensitive},
	}
	rec.Seal(rand.Text())
	return rec
}
