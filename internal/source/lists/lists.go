// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// listRoom is what those take together that are read.
	listRoom = 2 * place.MaxList
	// listPace is how fast one has to come while others wait for the room: many registries
	// send it in small parts, of which each takes its time.
	listPace = 16 << 10 // bytes a second
	// atOnce is how many lists of versions come at once: each takes some memory.
	atOnce = 64
	// patience is how long a list may wait for room.
	patience = time.Minute
	// CacheBytes is how much of lists of versions is kept in memory. One always fits.
	CacheBytes = place.MaxList
	// replyCache is how much is kept of what was to be known of lists, which is little.
	replyCache = 8 << 20 // bytes
)

// Lists are the versions that artifacts were published in. What was read for one
// stack serves all that follow the same artifact, with the same credentials.
//
// Lists may be large, and many may come at once, to callers who couldn't wait for them.
// So what they want to know is found out while the list is there, and is kept when the
// list has to go for others: they come again, and don't ask for it anew.
type Lists struct {
	turns *turns
	// Starts has room for the first part of each list, for which no other is taken, and
	// Room for the rest. Both are shared by all hosts, and taken by lists that have begun
	// to come.
	Starts, Room *room.Room
	known        *lru.Cache[string, List]  // by artifact and credentials
	replies      *lru.Cache[string, Reply] // by these, and the inquiry

	mu   sync.Mutex
	open map[string]map[string]Inquiry // by artifact and credentials
}

// List of versions, as they were when it was asked for.
type List struct {
	Asked    time.Time
	Versions []string
}

// Inquiry is what somebody wants to know of a list: the newest version of a line, or
// whether one of its versions isn't there.
type Inquiry struct {
	Line    versions.Line
	Version string // "": the newest one
}

// Reply to an inquiry.
type Reply struct {
	Asked   time.Time
	Newest  string
	None    error // why there is no newest one
	Missing bool
	size    int64
}

// New keeps so many bytes of lists.
func New(bytes int64) *Lists {
	memory := room.New(listRoom, patience)
	memory.Pace = listPace
	starts := room.New(atOnce*room.Little, patience)
	starts.Each = room.Little
	return &Lists{
		turns:   newTurns(),
		Starts:  starts,
		Room:    memory,
		known:   lru.New[string](bytes, List.bytes),
		replies: lru.New[string](replyCache, func(r Reply) int64 { return r.size }),
		open:    map[string]map[string]Inquiry{},
	}
}

// Turn waits until a list of the host may be asked for.
func (l *Lists) Turn(host string) (leave func()) { return l.turns.take(host) }

// Read gives the reader of a list its room, until all is known that is to be known of it.
func (l *Lists) Read(ctx context.Context) (_ context.Context, done func()) {
	ctx, coming := l.Starts.Enter(ctx)
	ctx, reading := l.Room.Enter(ctx)
	return ctx, func() {
		reading.Done()
		coming.Done()
	}
}

func (l List) bytes() int64 {
	const overhead = 64
	size := int64(overhead)
	for _, version := range l.Versions {
		size += int64(len(version)) + 16
	}
	return size
}

func (q Inquiry) String() string { return q.Line.String() + " " + q.Version }

// of is the reply by a list.
func (q Inquiry) of(l List) Reply {
	told := Reply{Asked: l.Asked}
	if q.Version != "" {
		told.Missing = !slices.ContainsFunc(l.Versions, func(is string) bool {
			return is == q.Version || q.Line.Allows(is) && !q.Line.Newer(is, q.Version) && !q.Line.Newer(q.Version, is) // "v1.0.0" will do for "1.0.0"
		})
		return told
	}
	var found bool
	if told.Newest, found = q.Line.Newest(l.Versions); !found {
		told.None = q.Line.None(l.Versions)
	}
	return told
}

// Recall replies by what was found before, if it is no older than notBefore.
func (l *Lists) Recall(name string, asked Inquiry, notBefore time.Time) (Reply, bool) {
	told, found := l.replies.Get(name + " " + asked.String())
	if found && !told.Asked.Before(notBefore) {
		return told, true
	}
	known, found := l.known.Get(name)
	if !found || known.Asked.Before(notBefore) {
		return Reply{}, false
	}
	return l.answer(name, asked, known), true
}

// answer an inquiry by a list.
func (l *Lists) answer(name string, asked Inquiry, by List) Reply {
	const overhead = 256
	told, key := asked.of(by), name+" "+asked.String()
	told.size = int64(len(key)+len(told.Newest)) + overhead
	l.replies.Put(key, told)
	return told
}

// Enter an inquiry: the next list of this name answers it.
func (l *Lists) Enter(name string, asked Inquiry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] == nil {
		l.open[name] = map[string]Inquiry{}
	}
	l.open[name][asked.String()] = asked
}

// Drop the inquiries of the name, and return them.
func (l *Lists) Drop(name string) map[string]Inquiry {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped := l.open[name]
	delete(l.open, name)
	return dropped
}

// Land keeps a list, and answers all that is asked of it.
func (l *Lists) Land(name string, got List) map[string]Reply {
	l.known.Put(name, got)
	replies := map[string]Reply{}
	for open := l.Drop(name); len(open) > 0; open = l.Drop(name) { // more come meanwhile
		for key, asked := range open {
			replies[key] = l.answer(name, asked, got)
		}
	}
	return replies
}
