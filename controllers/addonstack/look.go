// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"errors"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// look asks the sources that haven't answered yet. It says whether all have.
func (r *Reconciler) look(ctx context.Context, s *addonsv1.AddonStack, followers []stack.Follower, current stack.Pins, o *outlook) (ended bool) {
	patience := lookPatience
	if o.asked {
		patience = laterPatience
	}
	o.asked = true
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended = true
	for _, follower := range followers {
		if o.answered.Has(follower.Name) {
			continue
		}
		found, err := r.find(ctx, s, follower, current, o)
		var failed *failure.Error
		switch {
		case errors.As(err, &failed) && failed.Reason != failure.ArtifactPending && !failed.Again:
			if found.newest == "" {
				found.newest = o.found[follower.Name].newest
			}
			found.err = failed
		case err != nil: // its request goes on
			ended = false
			continue
		}
		o.found[follower.Name] = found
		o.answered.Insert(follower.Name)
	}
	return ended
}

// find looks for the newest version that a follower may have, and whether it can be
// used, if it is to be taken.
func (r *Reconciler) find(ctx context.Context, s *addonsv1.AddonStack, follower stack.Follower, current stack.Pins, o *outlook) (finding, error) {
	ref, notBefore := referenceOf(s.Namespace, follower), o.notBefore
	newest, err := r.Sources.Newest(ctx, ref, follower.Line, notBefore)
	if err != nil {
		return finding{}, err
	}
	found := finding{newest: newest}
	pin, pinned := current[follower.Name]
	if suspended(s) && pinned || !follower.IsNewer(newest, pin) {
		withdrawn, err := r.withdrawn(ctx, ref, follower.Line, pin.Version, o)
		if withdrawn {
			found.withdrawn = pin.Version
		}
		if withdrawn || err != nil {
			return found, err
		}
		found.pin, err = r.findNamed(ctx, ref, follower, pin, o)
		return found, err
	}
	digest, err := r.Sources.Pin(ctx, ref, newest, notBefore)
	if err != nil {
		named, pending := r.findNamed(ctx, ref, follower, pin, o)
		if pending != nil {
			return found, pending
		}
		found.pin = named
		return found, err
	}
	pin = stack.Pin{Version: newest, Digest: digest}
	if follower.Bundle != nil {
		if err := r.tryBundle(ctx, s, pin); err != nil {
			return found, err
		}
	}
	found.pin = pin
	return found, nil
}

// findNamed finds the version that the newest revision has because the spec named it
// before, which nobody looked for then: no pin if it can't be used, as clusters say, too.
// An error is that of a request that goes on.
func (r *Reconciler) findNamed(ctx context.Context, ref reference.Reference, follower stack.Follower, pin stack.Pin, o *outlook) (stack.Pin, error) {
	if pin.Version == "" || follower.HasFound(pin) {
		return stack.Pin{}, nil
	}
	digest, err := r.Sources.Pin(ctx, ref, pin.Version, o.notBefore)
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason != failure.ArtifactPending {
		return stack.Pin{}, nil
	}
	if err != nil {
		return stack.Pin{}, err
	}
	return stack.Pin{Version: pin.Version, Digest: digest}, nil
}

// withdrawn says whether a version that was taken isn't published any more. Another
// instance may have taken it from a list that is newer than what was found before: so
// that is asked for again.
func (r *Reconciler) withdrawn(ctx context.Context, ref reference.Reference, line versions.Line, version string, o *outlook) (bool, error) {
	withdrawn, err := r.Sources.Withdrawn(ctx, ref, line, version, o.notBefore)
	if err != nil || !withdrawn {
		return false, err
	}
	return r.Sources.Withdrawn(ctx, ref, line, version, o.begun)
}

// referenceOf says what the sources are to look at.
func referenceOf(namespace string, follower stack.Follower) reference.Reference {
	if follower.Bundle != nil {
		return reference.BundleOf(namespace, follower.Bundle)
	}
	return reference.AddonOf(namespace, follower.Addon, nil)
}

// isWithdrawn says that the version which a follower has isn't published any more.
func isWithdrawn(follower stack.Follower, version string) *failure.Error {
	return failure.New(failure.ArtifactNotFound, "%s isn't published any more. What has it keeps it, but it may not be had again: "+
		"publish a newer version, publish it again with the same content, or change %s so that it doesn't allow it, to go back", version, follower.Line)
}
