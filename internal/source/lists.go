// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// maxVersions is how many versions of one artifact are taken into account.
	maxVersions = 100_000
	// maxList is what a list of them takes at most.
	maxList = 16 << 20 // bytes
	// listRoom is what those take together that are read.
	listRoom = 2 * maxList
	// listPace is how fast one has to come while others wait for the room: many registries
	// send it in small parts, of which each takes its time.
	listPace = 16 << 10 // bytes a second
	// versionCache is how much of lists of versions is kept in memory. One always fits.
	versionCache = maxList
	// replyCache is how much is kept of what was to be known of lists, which is little.
	replyCache = 8 << 20 // bytes
)

// lists are the versions that artifacts were published in. What was read for one
// stack serves all that follow the same artifact, with the same credentials.
//
// Lists may be large, and many may come at once, to callers who couldn't wait for them.
// So what they want to know is found out while the list is there, and is kept when the
// list has to go for others: they come again, and don't ask for it anew.
type lists struct {
	turns   *turns
	room    *room.Room
	known   *lru.Cache[string, list]  // by artifact and credentials
	replies *lru.Cache[string, reply] // by these, and the inquiry

	mu   sync.Mutex
	open map[string]map[string]inquiry // by artifact and credentials
}

// list of versions, as they were when it was asked for.
type list struct {
	asked    time.Time
	versions []string
}

// inquiry is what somebody wants to know of a list: the newest version of a line, or
// whether one of its versions isn't there.
type inquiry struct {
	line    versions.Line
	version string // "": the newest one
}

// reply to an inquiry.
type reply struct {
	asked   time.Time
	newest  string
	none    error // why there is no newest one
	missing bool
	size    int64
}

func newLists() *lists {
	memory := room.New(listRoom, fetchTimeout)
	memory.Pace = listPace
	return &lists{
		turns:   newTurns(),
		room:    memory,
		known:   lru.New[string](versionCache, list.bytes),
		replies: lru.New[string](replyCache, func(r reply) int64 { return r.size }),
		open:    map[string]map[string]inquiry{},
	}
}

func (l list) bytes() int64 {
	const overhead = 64
	size := int64(overhead)
	for _, version := range l.versions {
		size += int64(len(version)) + 16
	}
	return size
}

func (q inquiry) String() string { return q.line.String() + " " + q.version }

// of is the reply by a list.
func (q inquiry) of(l list) reply {
	told := reply{asked: l.asked}
	if q.version != "" {
		told.missing = !slices.ContainsFunc(l.versions, func(is string) bool {
			return is == q.version || q.line.Allows(is) && !q.line.Newer(is, q.version) && !q.line.Newer(q.version, is) // "v1.0.0" will do for "1.0.0"
		})
		return told
	}
	var found bool
	if told.newest, found = q.line.Newest(l.versions); !found {
		told.none = q.line.None(l.versions)
	}
	return told
}

// inquire asks of the list of the reference's artifact.
func (r *remote) inquire(ctx context.Context, ref reference.Reference, asked inquiry, notBefore time.Time) (reply, error) {
	name := ref.Unversioned()
	question := "versions of " + name
	for {
		if told, found := r.lists.recall(name, asked, notBefore); found {
			return told, nil
		}
		if known, found := r.recall(ctx, question, ref); found {
			return reply{}, known.error()
		}
		r.lists.enter(name, asked)
		replies, err := r.askForList(ctx, name, question, ref, notBefore)
		if err != nil {
			return reply{}, err
		}
		if told, found := replies[asked.String()]; found && !told.asked.Before(notBefore) {
			return told, nil
		}
		// Others began that request, too early; or it had ended.
	}
}

// askForList lets one of the concurrent callers ask for all. It returns the replies to
// all inquiries that were open when it landed.
func (r *remote) askForList(ctx context.Context, name, question string, ref reference.Reference, notBefore time.Time) (map[string]reply, error) {
	return flight.Board(ctx, r.flights, r.route(ctx, question, ref), func(ctx context.Context) (map[string]reply, error) {
		leave := r.lists.turns.take(ref.Base().Host)
		defer leave()
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		ctx, coming := r.lists.turns.small.Enter(ctx)
		defer coming.Done()
		ctx, reading := r.lists.room.Enter(ctx)
		defer reading.Done() // when all is known that is to be known of it
		got := list{asked: r.clock.Now()}
		failed := r.ask(ctx, question, ref, func(ctx context.Context, place place, as *guest) error {
			from, ok := place.(catalogue)
			if !ok {
				return failure.New(failure.ArtifactInvalid, "newer versions are to be looked for, but this kind of source has no list of them; name an exact version")
			}
			published, asOf, err := from.versions(ctx, as, notBefore)
			got.versions = published
			if asOf.Before(got.asked) && !asOf.IsZero() {
				got.asked = asOf
			}
			return err
		})
		if failed.err != nil {
			r.lists.drop(name)
			return nil, failed.error()
		}
		r.answers.Remove(question) // a failure before
		return r.lists.land(name, got), nil
	})
}

// recall replies by what was found before, if it is no older than notBefore.
func (l *lists) recall(name string, asked inquiry, notBefore time.Time) (reply, bool) {
	told, found := l.replies.Get(name + " " + asked.String())
	if found && !told.asked.Before(notBefore) {
		return told, true
	}
	known, found := l.known.Get(name)
	if !found || known.asked.Before(notBefore) {
		return reply{}, false
	}
	return l.answer(name, asked, known), true
}

// answer an inquiry by a list.
func (l *lists) answer(name string, asked inquiry, by list) reply {
	const overhead = 256
	told, key := asked.of(by), name+" "+asked.String()
	told.size = int64(len(key)+len(told.newest)) + overhead
	l.replies.Put(key, told)
	return told
}

// enter an inquiry: the next list of this name answers it.
func (l *lists) enter(name string, asked inquiry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] == nil {
		l.open[name] = map[string]inquiry{}
	}
	l.open[name][asked.String()] = asked
}

// drop the inquiries of the name, and return them.
func (l *lists) drop(name string) map[string]inquiry {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped := l.open[name]
	delete(l.open, name)
	return dropped
}

// land keeps a list, and answers all that is asked of it.
func (l *lists) land(name string, got list) map[string]reply {
	l.known.Put(name, got)
	replies := map[string]reply{}
	for open := l.drop(name); len(open) > 0; open = l.drop(name) { // more come meanwhile
		for key, asked := range open {
			replies[key] = l.answer(name, asked, got)
		}
	}
	return replies
}

// taking takes the versions of a list one by one, and room for it if it gets large.
type taking struct {
	ctx      context.Context
	versions []string
	bytes    int64
	reserved bool
}

// add a version.
func (t *taking) add(version string) error {
	if len(t.versions) == maxVersions {
		return tooManyTags(maxVersions)
	}
	t.bytes += int64(len(version)) + 16
	if t.bytes > room.Little && !t.reserved {
		if err := room.Reserve(t.ctx, maxList); err != nil {
			return err
		}
		t.reserved = true
	}
	t.versions = append(t.versions, version)
	return nil
}
