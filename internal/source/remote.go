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

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
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
	access  *access
	stock   *stock
	clock   clock.Clock
	timeout time.Duration // of one request, with its body
	room    *room.Room
	answers *lru.Cache[string, answer] // by what was asked
	tallies *tallies                   // those of all origins
	lists   *lists
	flights *flight.Flights
	refused *refusal.Refusals

	store     *store.Store // nil: nothing is kept on disk
	grants    *grants
	downloads singleflight.Group
}

// place is one chart on another host. Its errors needn't be worded: see [guest.word].
type place interface {
	// resolve asks for the digest of the chart's archive.
	resolve(ctx context.Context, as *guest) (digest string, err error)
	// fetch asks for the archive with that digest, and verifies it.
	fetch(ctx context.Context, as *guest, digest string) (artifact.Content, error)
	// probe asks whether this guest may fetch it, at one of the sites where others did.
	probe(ctx context.Context, as *guest, digest string, among func(site) bool) (bool, error)
}

func newRemote(options Options, objects *object.Reader, limits artifact.Limits, shared *grants) *remote {
	memory := room.New(max(limits.TotalBytes, limits.ArchiveBytes), fetchTimeout)
	return &remote{
		access:  newAccess(options, objects, limits),
		stock:   newStock(limits, options.Clock, memory),
		room:    memory,
		clock:   options.Clock,
		timeout: fetchTimeout,
		answers: lru.New[string](remembered, lru.One[answer]),
		lists:   newLists(),
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
	return r.digest(ctx, ref.DigestQuestion(), ref, func(ctx context.Context, place place, as *guest) (string, error) {
		return place.resolve(ctx, as)
	})
}

// digest asks the place a question whose answer is a digest. All who have the same
// question share one request, and its answer. If what has the digest was refused, it is
// asked again at times; until there is another answer, the one before is the answer.
func (r *remote) digest(ctx context.Context, question string, ref reference.Reference, ask func(context.Context, place, *guest) (string, error)) (string, error) {
	to := r.route(ctx, question, ref)
	known, found := r.recall(ctx, question, ref)
	if found && (known.err != nil || !r.refused.Due(to)) {
		return known.digest, known.error()
	}
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
		call := func(ctx context.Context, place place, as *guest) (err error) {
			now.digest, err = ask(ctx, place, as)
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

// ask calls the place with the reference's credentials, and remembers a failure.
func (r *remote) ask(ctx context.Context, question string, ref reference.Reference, call func(context.Context, place, *guest) error) answer {
	before := r.access.version(ctx, ref) // if it changes meanwhile, a failure won't count
	if err := r.visit(ctx, ref, call); err != nil {
		return r.remember(question, ref, before, err)
	}
	return answer{}
}

// visit calls the place with the reference's credentials. Only what was sent counts as
// a request: credentials may be missing, and an index may be at hand.
func (r *remote) visit(ctx context.Context, ref reference.Reference, call func(context.Context, place, *guest) error) error {
	started := r.clock.Now()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { sent.Store(true) }})
	as, err := r.access.guest(ctx, ref)
	if err == nil {
		err = as.word(ctx, flight.Guarded(func() error { return call(traced, placeOf(ref, r.stock), as) }))
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
	return flight.Route{Name: name, Host: ref.Base().Host, Credentials: r.access.version(ctx, ref)}
}
