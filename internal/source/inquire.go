// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/lists"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// inquire asks of the list of the reference's artifact.
func (r *remote) inquire(ctx context.Context, ref reference.Reference, asked lists.Inquiry, notBefore time.Time) (lists.Reply, error) {
	name := ref.Unversioned()
	question := "versions of " + name
	for {
		if told, found := r.lists.Recall(name, asked, notBefore); found {
			return told, nil
		}
		if known, found := r.recall(ctx, question, ref); found {
			return lists.Reply{}, known.error()
		}
		r.lists.Enter(name, asked)
		replies, err := r.askForList(ctx, name, question, ref, notBefore)
		if err != nil {
			return lists.Reply{}, err
		}
		if told, found := replies[asked.String()]; found && !told.Asked.Before(notBefore) {
			return told, nil
		}
		// Others began that request, too early; or it had ended.
	}
}

// askForList lets one of the concurrent callers ask for all. It returns the replies to
// all inquiries that were open when it landed.
func (r *remote) askForList(ctx context.Context, name, question string, ref reference.Reference, notBefore time.Time) (map[string]lists.Reply, error) {
	return flight.Board(ctx, r.flights, r.route(ctx, question, ref), func(ctx context.Context) (map[string]lists.Reply, error) {
		leave := r.lists.Turn(ref.Base().Host)
		defer leave()
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		ctx, done := r.lists.Read(ctx)
		defer done() // when all is known that is to be known of it
		got := lists.List{Asked: r.clock.Now()}
		failed := r.ask(ctx, question, ref, func(ctx context.Context, at place.Place, as *guest.Guest) error {
			from, ok := at.(place.Catalogue)
			if !ok {
				return failure.New(failure.ArtifactInvalid, "newer versions are to be looked for, but this kind of source has no list of them; name an exact version")
			}
			published, asOf, err := from.Versions(ctx, as, notBefore)
			got.Versions = published
			if asOf.Before(got.Asked) && !asOf.IsZero() {
				got.Asked = asOf
			}
			return err
		})
		if failed.err != nil {
			r.lists.Drop(name)
			return nil, failed.error()
		}
		r.answers.Remove(question) // a failure before
		return r.lists.Land(name, got), nil
	})
}
