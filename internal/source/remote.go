// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/lists"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/refusal"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/source/store"
)

// remote is the origin of charts on other hosts.
//
// An exact version is looked up once: what it was resolved to is remembered, for
// as long as the process runs, by all objects with the same address and the same
// credentials. A failure is remembered, too, until it is time to ask again, or the
// credentials are others: however many clusters wait for a source that is down,
// it is asked by one of them.
type remote struct {
	access  *guest.Access
	places  places
	clock   clock.Clock
	limits  artifact.Limits
	timeout time.Duration // of one request, with its body
	room    *room.Room
	answers *lru.Cache[string, answer] // by what was asked
	tallies *tallies                   // those of all origins
	lists   *lists.Lists
	flights *flight.Flights
	refused *refusal.Refusals

	store     *store.Store // nil: nothing is kept on disk
	grants    *grants
	downloads singleflight.Group
}

func newRemote(options Options, objects *object.Reader, limits artifact.Limits, shared *grants) *remote {
	memory := room.New(max(limits.TotalBytes, limits.ArchiveBytes), fetchTimeout)
	return &remote{
		access: guest.New(guest.Options{
			Objects: objects, CredentialsDir: options.CredentialsDir, AllowLoopback: options.AllowLoopback,
			UserAgent: options.UserAgent, Limits: limits, Clock: options.Clock,
		}),
		places: places{
			aside:    place.NewAside(),
			indexes:  helm.NewIndexes(limits, options.Clock, memory, helm.IndexCache),
			releases: github.NewReleases(options.Clock, memory),
		},
		room:    memory,
		clock:   options.Clock,
		limits:  limits,
		timeout: fetchTimeout,
		answers: lru.New[string](remembered, lru.One[answer]),
		lists:   lists.New(lists.CacheBytes),
		flights: flight.New(options.Clock),
		refused: refusal.New(options.Clock),
		tallies: newTallies(),
		store:   options.Store,
		grants:  shared,
	}
}

func (r *remote) resolve(ctx context.Context, ref reference.Reference) (string, error) {
	if digest := ref.GivenDigest(); digest != "" {
		return digest, nil
	}
	return r.digest(ctx, ref.DigestQuestion(), ref, func(ctx context.Context, at place.Place, as *guest.Guest) (string, error) {
		return at.Resolve(ctx, as)
	})
}

// digest asks the place a question whose answer is a digest. All who have the same
// question share one request, and its answer. If what has the digest was refused, it is
// asked again at times; until there is another answer, the one before is the answer.
func (r *remote) digest(ctx context.Context, question string, ref reference.Reference, ask func(context.Context, place.Place, *guest.Guest) (string, error)) (string, error) {
	known, found := r.recall(ctx, question, ref)
	if found && (known.err != nil || !r.due(ctx, question, ref)) {
		return known.digest, known.error()
	}
	to := r.route(ctx, question, ref)
	got, err := flight.Board(ctx, r.flights, to, func(ctx context.Context) (answer, error) {
		before, found := r.recall(ctx, question, ref)
		if found && (before.err != nil || !r.refused.Due(to)) { // by a flight that just ended
			return before, before.error()
		}
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		ctx, reading := r.room.Enter(ctx)
		defer reading.Done()
		now := answer{asked: r.clock.Now()}
		call := func(ctx context.Context, at place.Place, as *guest.Guest) (err error) {
			now.digest, err = ask(ctx, at, as)
			return err
		}
		if found {
			if err := r.visit(ctx, ref, call); err != nil {
				now = before
			}
		} else if failed := r.ask(ctx, question, ref, call); failed.err != nil {
			r.refused.Asked(to, "")
			return failed, failed.error()
		}
		r.answers.Put(question, now)
		r.refused.Asked(to, now.digest)
		return now, nil
	})
	if slow, ok := errors.AsType[*failure.Error](err); ok && found && slow.Reason == failure.ArtifactPending {
		return known.digest, known.error()
	}
	return got.digest, err
}

// due says whether to ask again what was answered. The credentials are looked at only for
// what was refused: that may take as long as reading the instance's own.
func (r *remote) due(ctx context.Context, question string, ref reference.Reference) bool {
	return r.refused.Waits(question) && r.refused.Due(r.route(ctx, question, ref))
}

// ask calls the place with the reference's credentials, and remembers a failure.
func (r *remote) ask(ctx context.Context, question string, ref reference.Reference, call func(context.Context, place.Place, *guest.Guest) error) answer {
	before := r.access.Version(ctx, ref) // if it changes meanwhile, a failure won't count
	if err := r.visit(ctx, ref, call); err != nil {
		return r.remember(question, ref, before, err)
	}
	return answer{}
}

// visit calls the place with the reference's credentials. Only what was sent counts as
// a request: credentials may be missing, and an index may be at hand.
func (r *remote) visit(ctx context.Context, ref reference.Reference, call func(context.Context, place.Place, *guest.Guest) error) error {
	started := r.clock.Now()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { sent.Store(true) }})
	as, err := r.access.Guest(ctx, ref)
	if err == nil {
		err = as.Word(ctx, flight.Guarded(func() error { return call(traced, r.places.of(ref), as) }))
	}
	ended := r.clock.Now()
	if sent.Load() {
		countRequest(ref, started, ended, err)
	}
	r.tallies.count(ref, started, ended, err)
	return err
}

// route of a flight for the reference.
func (r *remote) route(ctx context.Context, name string, ref reference.Reference) flight.Route {
	if ref.Bundle != nil {
		ref = reference.BundleOf(ref.Namespace, ref.Bundle)
	}
	if !ref.Remote() {
		return flight.Route{Name: name}
	}
	return flight.Route{Name: name, Host: ref.Base().Host, Credentials: r.access.Version(ctx, ref)}
}
