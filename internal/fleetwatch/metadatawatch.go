// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
)

// watchTimeout is how long a watch lasts at least, up to twice as long: a fleet has tens of thousands of them. For the
// same reason they have no bookmarks. Bookmarks cost more than a LIST of the few objects of add-ons. The LIST follows
// when a watch can't continue where the previous one ended.
const watchTimeout = 30 * time.Minute

const (
	// watchSlack is how much earlier than asked for a server may end a watch.
	watchSlack = 5 * time.Second
	// leastWatch is what a watch lasts at least, unless the server won't have any.
	leastWatch = time.Second
)

// errWatchCut ends a watch that the server, or the network, ended before its time.
var errWatchCut = errors.New("the watch ended before its time")

// brokenWatch is the end of a watch that the server, or a limit, didn't let go on.
type brokenWatch struct{ error }

// Unwrap returns what ended it.
func (b *brokenWatch) Unwrap() error { return b.error }

// metadataServer is a connection to a cluster whose metadata can be watched.
type metadataServer interface {
	Metadata() metadata.Interface
	WatchMetadata(context.Context, schema.GroupVersionResource, metav1.ListOptions, func(watch.Event)) error
}

// metadataWatch lists the metadata of a resource, and watches it from there on, as client-go's reflector does. It takes one
// goroutine, and a reflector three, of which a fleet would have a hundred thousand.
type metadataWatch struct {
	server   metadataServer
	resource schema.GroupVersionResource
	selector string
	clock    clock.PassiveClock
	// cutIsFailure has objects listed again after a watch that ended before its time. Else the next one continues where it ended.
	cutIsFailure bool
	// timeout is how long a list may take, with all of its pages; zero is listTimeout.
	timeout time.Duration

	// list returns the resourceVersion of what it has listed.
	list func(context.Context, metadata.ResourceInterface, metav1.ListOptions) (version string, err error)
	// listed and changed take in what there is. Their errors end the watch.
	listed  func(version string) error
	changed func(m *metav1.PartialObjectMetadata, there bool) error
}

// run lists and watches until something fails, or the context ends. Callers run it again after a while.
func (f *metadataWatch) run(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(f.timeout, listTimeout))
	version, err := f.list(limited, f.server.Metadata().Resource(f.resource), metav1.ListOptions{LabelSelector: f.selector})
	cancel()
	if err != nil {
		return err
	}
	if err := f.listed(version); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	for ctx.Err() == nil {
		asked := watchTimeout + rand.N(watchTimeout)
		begin := f.clock.Now()
		var broken error
		err := f.server.WatchMetadata(ctx, f.resource, metav1.ListOptions{
			LabelSelector: f.selector, ResourceVersion: version, TimeoutSeconds: new(int64(asked.Seconds())),
		}, func(e watch.Event) {
			if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
				version = m.ResourceVersion
				if err := f.changed(m, e.Type != watch.Deleted); err != nil {
					end(err)
				}
			} else if e.Type == watch.Error && broken == nil {
				broken = apierrors.FromObject(e.Object)
			}
		})
		lasted := f.clock.Since(begin)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("watching %s: %w", f.resource.Resource, err)
		case broken != nil:
			return &brokenWatch{broken}
		case f.cutIsFailure && lasted < asked-watchSlack, lasted < leastWatch:
			return errWatchCut
		}
	}
	return nil
}

// isExpired reports whether a watch ended because the server has forgotten where it began.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

const (
	// listTimeout is how long a list may take, with all of its pages.
	listTimeout = 2 * time.Minute
	// pageTimeout is how long a page of it may take, also if the server asks to come back later.
	pageTimeout = 45 * time.Second
	// pageSize is how many objects are listed in one request.
	pageSize = 500
)

// listPages lists page by page, and returns the resourceVersion. An error of each, which takes in an object, ends the list.
func listPages(ctx context.Context, objects metadata.ResourceInterface, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata) error) (version string, _ error) {
	o.Limit = pageSize
	for {
		page, err := onePage(ctx, objects, o, each)
		if err != nil {
			return "", err
		}
		if page.Continue == "" {
			return page.ResourceVersion, nil
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = page.Continue, "", ""
	}
}

// onePage lists one page, and returns what it says of the list. The page counts until all of its objects were taken in.
func onePage(ctx context.Context, objects metadata.ResourceInterface, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata) error) (metav1.ListMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	ctx, release := budget.Holding(fleet.WithPages(ctx))
	defer release()
	page, err := objects.List(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	for i := range page.Items {
		if err := each(&page.Items[i]); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return page.ListMeta, nil
}
