// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Made is a revision that isn't recorded yet.
type Made struct {
	Record        *record.Record
	Inventory     []record.Entry               // of the revisions before
	CRDs, Objects []*unstructured.Unstructured // as they are to be applied
	Previous      []*unstructured.Unstructured // of the revision before, as they would be; nil if they can't be read
	// Unchanged are the entries of objects that the deployed revision has just so.
	Unchanged map[record.ObjectKey]record.Entry
	// IsDeployed says that the revision is recorded and deployed.
	IsDeployed bool

	before    *record.Record // the deployed one, or of the release of Helm that is taken over; nil if there is none
	isUnasked bool           // nothing but facts differs from that one
}

// make renders a revision that follows the records, of which the deployed one may be given. It takes the generated values from the
// revision before if none are given.
func (m *Maker) make(ctx context.Context, number int, deployed *record.Record, given job.Generated) (*Made, error) {
	inherited, err := m.inherit(ctx)
	if err != nil {
		return nil, err
	}
	made := &Made{Inventory: inherited.objects, before: cmp.Or(deployed, inherited.before)}
	isUpgrade := m.Past.IsUpgrade(nil) || len(m.Past.Records) == 0 && number > 1 // those before may have been trimmed
	input := RenderInput{Revision: number, Upgrade: isUpgrade, Values: m.recordedValues(inherited.before)}
	isNew := given == nil && inherited.values == nil
	found := &reader{maker: m}
	if input.Generated, found.inventory, err = m.inheritOthers(ctx, given, inherited); err != nil {
		return nil, err
	}
	if len(found.inventory) > 0 {
		input.Lookup = found.lookup
		if len(made.Inventory) > 0 && isNew && (len(m.Past.Records) == 0 || !m.Past.Records[0].Complete) {
			input.Live = found.live
		}
	}
	rendering, err := m.Want.Render(ctx, input)
	if err != nil {
		return nil, err
	}
	weight := object.Weight(rendering.Objects...)
	if err := m.Past.Memory.Hold(ctx, 2*(weight+object.Weight(rendering.CRDs...))); err != nil { // with the copies that are applied
		return nil, err
	}
	if m.Want.CRDPolicy == addonsv1.CRDPolicySkip {
		rendering.CRDs = nil
	}
	if err := accepts(rendering, made.Inventory, m.Checks); err != nil {
		return nil, err
	}
	if made.CRDs, made.Objects, err = m.Applier.Scope.PrepareBoth(rendering.CRDs, rendering.Objects); err != nil {
		return nil, err
	}
	kept, err := m.keepPodAnnotations(ctx, rendering, made)
	if err != nil {
		return nil, err
	}
	if made.Record, err = m.newRecord(ctx, rendering, number); err != nil {
		return nil, err
	}
	made.Record.Otherwise = message.List(kept, ", ", message.Few)
	if err := m.Past.Memory.Hold(ctx, int64(len(made.Record.Helm.Manifest))-weight); err != nil {
		return nil, err
	}
	return made, m.Past.Memory.Spare(ctx, made.Record.ParsingCost())
}

// recordedValues returns the values of a release of Helm that is taken over, nil unless the add-on is to keep these.
func (m *Maker) recordedValues(before *record.Record) map[string]any {
	if !m.Want.TakesValues || before == nil {
		return nil
	}
	m.Past.Hidden.Learn(job.StringsIn(nil, before.Helm.Config)...) // nothing says which of them are secret
	return before.Helm.Config
}

// accepts returns why a rendering can't follow what is installed, nil if it can.
func accepts(in *Rendering, inventory []record.Entry, checks readiness.Checks) error {
	removable := slices.DeleteFunc(slices.Clone(inventory), func(e record.Entry) bool { return e.CRD })
	if len(in.Objects) == 0 && len(removable) > 0 { // an empty rendering removes nothing
		return failure.New(ReasonEmptyRendering,
			"Beside CRDs of crds/ and hooks, the chart renders nothing with these values, and %d objects are installed. Nothing was removed. To remove them, take the add-on out of its stack",
			len(removable))
	}
	if check, ok := checks.Unmatched(slices.Concat(in.Objects, in.CRDs)); ok {
		return failure.New(ReasonReadinessInvalid,
			"A readiness check is for %s %s %s, which the chart doesn't have", check.APIVersion, check.Kind, check.Name)
	}
	return nil
}
