// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// noteErrors hands on the events of a watch, and notes why it broke. Unlike [watch.Filter] it
// ends when nobody takes its events any more.
func noteErrors(events watch.Interface, note func(error)) watch.Interface {
	noted := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(noted)
	go func() {
		defer close(noted)
		defer events.Stop()
		for {
			var e watch.Event
			var open bool
			select {
			case e, open = <-events.ResultChan():
			case <-proxy.StopChan():
			}
			if !open {
				return
			}
			if err := apierrors.FromObject(e.Object); e.Type == watch.Error && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				note(&brokenWatch{err})
			}
			select {
			case noted <- e:
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return proxy
}

// brokenWatch is the end of a watch that the server, or a limit, didn't let go on.
type brokenWatch struct{ error }

// Unwrap returns what ended it.
func (b *brokenWatch) Unwrap() error { return b.error }

// errWatchCut ends a watch that the server, or the network, ended before its time. Then the
// records are listed anew: a server that was restored from a backup shows an older state, and
// would accept a watch of what is newer.
var errWatchCut = errors.New("the watch ended before its time")

// watchTime says when a watch is to end by itself.
type watchTime struct{ end time.Time }

// wasCut reports whether the watch before this one ended too early, and notes the end of this one.
func (t *watchTime) wasCut(now time.Time, seconds *int64) bool {
	cut := now.Before(t.end)
	t.end = time.Time{}
	if !cut && seconds != nil {
		t.end = now.Add(time.Duration(*seconds)*time.Second - watchSlack)
	}
	return cut
}

// watchSlack is how much earlier than asked for a server may end a watch.
const watchSlack = 5 * time.Second

// watchTimeout is how long a watch lasts at least, up to twice as long, in a fleet with many of
// them. For the same reason they have no bookmarks: those cost more than a LIST of the few
// objects of add-ons, which follows when a watch can't go on where the one before it ended.
const watchTimeout = 30 * time.Minute

// listFirst has a reflector list and then watch: the events with which a watch may begin
// would all be kept until the last of them.
type listFirst struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported tells the reflector so.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }
