// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleet"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// pass is one pass over the add-ons of a cluster.
type pass struct {
	*Reconciler
	ca       *addonsv1.ClusterAddon
	cluster  *clusterv1.Cluster
	workload *workload
	// undecided are the stacks of which it isn't known what they want, by name.
	undecided map[string]undecided
	// heldRemovals are those that wait for confirmation, as people are told of them.
	heldRemovals []string
	// stored is the ClusterAddon as it was last written.
	stored *addonsv1.ClusterAddon

	installed map[deliver.Release]deliver.Summary
	// leaving are the records of what isn't wanted any more, in the order of removal.
	leaving []deliver.Summary
	// arriving are wanted ones that may take something over of these yet.
	arriving   []*addon
	statuses   []addonsv1.AddonStatus
	used       sets.Set[object]
	errs       []error
	silent     bool // the cluster doesn't answer any more: no use in going on
	retryAfter time.Duration
}

// ensureAll takes each wanted add-on as far as it can go.
func (p *pass) ensureAll(ctx context.Context, wanted []addon) {
	holder := claims(wanted, p.installed, p.undecided)
	ready := map[string]bool{} // "stack/name"
	for i := range wanted {
		a := &wanted[i]
		status := addonsv1.AddonStatus{Name: a.Name, Namespace: a.release().Namespace, Stack: a.stack}
		applied := false
		if by := holder[a.release()]; p.silent || a.behind {
			status = p.formerly(status)
		} else if by != a.stack {
			status.Phase, status.Reason = addonsv1.AddonFailed, reasons.ReleaseTaken
			status.Message = fmt.Sprintf("AddonStack %s has an add-on %s in namespace %s already; change spec.addons[].name or namespace of one of them",
				by, a.Name, a.release().Namespace)
		} else {
			applied = p.ensure(ctx, a, ready, &status)
		}
		if isArriving(&status, applied) {
			p.arriving = append(p.arriving, a)
		}
		ready[a.stack+"/"+a.Name] = status.Phase == addonsv1.AddonReady
		p.statuses = append(p.statuses, status)
	}
}

// ensure takes one add-on as far as it can go, and writes its status. It says whether
// all of its objects were applied by that.
func (p *pass) ensure(ctx context.Context, a *addon, ready map[string]bool, status *addonsv1.AddonStatus) (applied bool) {
	defer p.contain(ctx, status)
	record, known := p.installed[a.release()]
	if known {
		describe(status, record)
		p.keepReadyCount(status, record)
	}
	in, settled, err := p.compare(ctx, a, record)
	terms := termsOf(a, record, in, settled)
	var awaited *hold
	if settled {
		awaited, err = p.recheck(ctx, a, record, &terms)
	}
	if p.setTerms(ctx, a, record, terms); p.silent {
		*status = p.formerly(*status)
		return false
	}
	if err != nil {
		p.inputFailed(err, a, record, status)
		return false
	}
	if awaited != nil {
		p.await(a, awaited, status)
		return true
	}
	if settled {
		status.Phase = addonsv1.AddonReady
		if !record.RenewAt.IsZero() {
			p.retryIn(record.RenewAt.Sub(p.Clock.Now()))
		}
		return false
	}
	if i := slices.IndexFunc(a.DependsOn, func(d string) bool { return !ready[a.stack+"/"+d] }); i >= 0 {
		status.Phase, status.Reason = addonsv1.AddonPending, reasons.WaitingForDependency
		status.Message = fmt.Sprintf("Waiting for add-on %s to be ready", a.DependsOn[i])
		return false
	}
	if held, err := p.held(ctx, a, in, record); err != nil {
		p.clusterFailed(err, status)
		return false
	} else if held != nil {
		status.Phase, status.Reason, status.Message = addonsv1.AddonPending, reasons.WaitingForPrecondition, shorten(held.message)
		p.retryIn(held.retryAfter)
		return false
	}
	install := p.installKey(a.release())
	if pause := p.reinstalls.pause(install, p.Clock.Now()); pause > 0 && !known {
		status.Phase, status.Reason = addonsv1.AddonPending, reasons.RecordLost
		status.Message = fmt.Sprintf("Its release record in namespace %s of the cluster is gone after each installation; see what deletes Secrets with the label owner=helm there. It is installed again after a while", install.release.Namespace)
		p.retryIn(pause)
		return false
	}
	outcome, err := p.Deliverer.Ensure(ctx, p.workload.target(), p.desired(a, in))
	if outcome.Wrote && !known {
		p.reinstalls.installed(install, p.Clock.Now())
	}
	if err != nil {
		p.upgradeFailed(err, status)
		return false
	}
	if outcome.Phase == addonsv1.AddonReady {
		p.workload.conn.InvalidateFacts() // it may have brought kinds that other charts ask about
	}
	p.note(outcome, status)
	keepReady(a, record, status)
	return outcome.Applied
}

// compare resolves the inputs, and says whether the record is of just these.
func (p *pass) compare(ctx context.Context, a *addon, record deliver.Summary) (in *inputs, settled bool, err error) {
	if in, err = p.inputs(ctx, a, record); err == nil {
		settled, err = p.settled(ctx, in, record)
	}
	return in, settled, err
}

// note takes over what the deliverer says of an add-on.
func (p *pass) note(outcome deliver.Outcome, status *addonsv1.AddonStatus) {
	status.Phase, status.Reason, status.Message = outcome.Phase, outcome.Reason, shorten(outcome.Message)
	if outcome.Phase == addonsv1.AddonReady {
		status.Reason = "" // as of one that was found ready
	}
	if outcome.Version != "" {
		status.Version = outcome.Version
	}
	if outcome.Revision != 0 {
		status.Revision, status.Digest = outcome.Revision, outcome.Digest
		status.Objects = &addonsv1.ObjectCounts{Total: outcome.Total, Ready: outcome.Ready}
	}
	p.retryIn(outcome.RetryAfter)
}

// clusterFailed notes a failure that another try may mend: the cluster didn't
// answer, or a write was lost to another one. Details that differ each time (ports,
// versions) go to the log.
func (p *pass) clusterFailed(err error, status *addonsv1.AddonStatus) {
	*status = p.formerly(*status)
	status.Reason = reasons.Retrying
	answer := apierrors.APIStatus(nil)
	limit, exceeded := errors.AsType[*fleet.LimitError](err)
	switch {
	case exceeded:
		p.silent = limit.Discovery
		status.Reason = limit.Reason
		status.Message = shorten(limit.Message + ". See what answers in the API server's place; trying again")
	case apierrors.IsConflict(err):
		status.Message = "Another write came first; trying again"
	case errors.As(err, &answer):
		status.Message = shorten(fmt.Sprintf("The cluster answered %q; trying again", answer.Status().Message))
	case isSilent(err):
		p.silent = true
		status.Message = "The cluster didn't answer" + requestOf(err) + "; trying again"
	default:
		status.Message = "A request failed before it was sent, or its answer can't be read; trying again. The manager's log has the error"
	}
	p.errs = append(p.errs, fmt.Errorf("add-on %s: %w", status.Name, err))
}

// upgradeFailed notes that what is wanted now couldn't be brought into the cluster: what was
// ready there is something else.
func (p *pass) upgradeFailed(err error, status *addonsv1.AddonStatus) {
	p.clusterFailed(err, status)
	if status.Phase == addonsv1.AddonReady {
		status.Phase = addonsv1.AddonUpgrading
	}
}

// formerly is the add-on's status as it was last time, Pending if it had none.
func (p *pass) formerly(status addonsv1.AddonStatus) addonsv1.AddonStatus {
	for _, s := range p.ca.Status.Addons {
		if s.Name == status.Name && s.Namespace == status.Namespace && s.Stack == status.Stack {
			return s
		}
	}
	if status.Phase == "" {
		status.Phase = addonsv1.AddonPending
	}
	return status
}

// keepReadyCount keeps the number of ready objects of a revision that isn't deployed, which
// the record doesn't tell.
func (p *pass) keepReadyCount(status *addonsv1.AddonStatus, record deliver.Summary) {
	was := p.formerly(*status)
	if record.Status != deliver.StatusDeployed && was.Revision == status.Revision && was.Objects != nil {
		status.Objects.Ready = min(was.Objects.Ready, status.Objects.Total)
	}
}

func (p *pass) retryIn(after time.Duration) {
	if after > 0 && (p.retryAfter == 0 || after < p.retryAfter) {
		p.retryAfter = after
	}
}

func (p *pass) err() error { return errors.Join(p.errs...) }

// result returns when to come back. A failure is tried again with backoff, and that must
// not make others wait that know their time.
func (p *pass) result() (ctrl.Result, error) {
	err := p.err()
	if err == nil {
		return ctrl.Result{RequeueAfter: p.retryAfter}, nil
	}
	if p.retryAfter > 0 {
		p.Queue.AddAfter(client.ObjectKeyFromObject(p.ca), p.retryAfter)
	}
	return ctrl.Result{}, err
}

// statusOf is the status of an add-on that only a record knows.
func statusOf(record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := addonsv1.AddonStatus{Name: record.Name, Namespace: record.Namespace, Stack: record.Stack, Phase: phase}
	describe(&status, record)
	return status
}

// describe fills the status with what a record says.
func describe(status *addonsv1.AddonStatus, record deliver.Summary) {
	status.Version, status.Revision, status.Digest = record.Version, int32(record.Revision), record.Digest
	status.Objects = &addonsv1.ObjectCounts{Total: record.Objects}
	if record.Status == deliver.StatusDeployed {
		status.Objects.Ready = record.Objects
	}
}
