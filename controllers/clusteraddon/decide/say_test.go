// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// The words of an add-on follow from the facts alone. Where several things are wrong, the first one is told.
func TestSay(t *testing.T) {
	said := func(phase addonsv1.AddonPhase, reason string) decide.Said {
		return decide.Said{Phase: phase, Reason: reason}
	}
	wrong := func(phase addonsv1.AddonPhase, reason string) *decide.Said { is := said(phase, reason); return &is }
	ready, failed, pending := addonsv1.AddonReady, addonsv1.AddonFailed, addonsv1.AddonPending
	refused, asked, renders := said(failed, failure.ArtifactInvalid), said(pending, failure.ArtifactPending), said(pending, job.ReasonWaitingForRenderer)
	down, paused, others := said(failed, failure.SourceUnavailable), said(pending, reasons.StackPaused), said(pending, reasons.WaitingForOtherClusters)
	for name, tc := range map[string]struct {
		came decide.Came
		want decide.Said
	}{
		"it is installed":                           {decide.Came{Said: said(ready, "")}, said(ready, "")},
		"its source is asked again":                 {decide.Came{Said: asked, Was: refused, SameRevision: true}, refused},
		"its source is asked for something else":    {decide.Came{Said: asked, Was: refused}, asked},
		"its source is down after it refused":       {decide.Came{Said: down, Was: refused, SameRevision: true}, down},
		"it was another failure":                    {decide.Came{Said: asked, Was: said(failed, deliver.ReasonHookFailed), SameRevision: true}, asked},
		"it waited for something already":           {decide.Came{Said: asked, Was: said(pending, reasons.ValuesNotFound), SameRevision: true}, asked},
		"a renderer is awaited":                     {decide.Came{Said: renders, Was: said(pending, "Before")}, renders},
		"a renderer is awaited for what is new":     {decide.Came{Said: renders, Was: said(pending, "Before"), AsWanted: true}, renders},
		"a renderer is awaited for what is Ready":   {decide.Came{Said: renders, Was: said(ready, "Before"), AsWanted: true}, said(ready, "Before")},
		"a renderer is awaited, of another spec":    {decide.Came{Said: renders, Was: said(ready, "Before")}, renders},
		"a renderer is awaited after a failure":     {decide.Came{Said: renders, Was: said(failed, "Before"), SameRevision: true}, said(failed, "Before")},
		"its source is down, and all is the same":   {decide.Came{Said: down, AsWanted: true, SameInputs: true}, said(ready, failure.SourceUnavailable)},
		"its source is down, and values are others": {decide.Came{Said: down, AsWanted: true}, down},
		"it is refused, and all is the same":        {decide.Came{Said: said(failed, object.ReasonForbidden), AsWanted: true, SameInputs: true}, said(failed, object.ReasonForbidden)},
		"a pause heals nothing":                     {decide.Came{Step: decide.AwaitResume, Said: paused, Was: said(failed, deliver.ReasonHookFailed)}, said(failed, deliver.ReasonHookFailed)},
		"a pause of what is Ready":                  {decide.Came{Step: decide.AwaitResume, Said: paused, Was: said(ready, "")}, paused},
		"other clusters are first":                  {decide.Came{Said: others, Was: said(failed, "Before")}, said(ready, reasons.WaitingForOtherClusters)},
		"other clusters are first, after a turn":    {decide.Came{Said: others, Was: said(failed, "Before"), HasTurn: true}, said(failed, "Before")},
		"its values were replaced":                  {decide.Came{Step: decide.KeepReplaced, Said: said(pending, "Replaced")}, said(ready, "Replaced")},
		"a workload isn't well":                     {decide.Came{Said: said(ready, ""), Degraded: wrong(addonsv1.AddonDegraded, "D")}, said(addonsv1.AddonDegraded, "D")},
		"a repair failed as well": {
			decide.Came{Said: said(ready, ""), RepairFailed: wrong(failed, "R"), Degraded: wrong(addonsv1.AddonDegraded, "D"), TermsUnwritten: wrong(addonsv1.AddonUpgrading, "T")},
			said(failed, "R"),
		},
		"its terms aren't written":             {decide.Came{Said: said(ready, ""), TermsUnwritten: wrong(addonsv1.AddonUpgrading, "T")}, said(addonsv1.AddonUpgrading, "T")},
		"its upgrade failed, and is told of":   {decide.Came{Said: said(failed, "U"), RepairFailed: wrong(failed, "R")}, said(failed, "U")},
		"it is kept Ready, and a repair fails": {decide.Came{Said: down, AsWanted: true, SameInputs: true, RepairFailed: wrong(failed, "R")}, said(failed, "R")},
	} {
		got := tc.came.Say()
		if got.Phase != tc.want.Phase || got.Reason != tc.want.Reason {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
