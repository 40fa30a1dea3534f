// SPDX-License-Identifier: Apache-2.0

// Package together asks a cluster once for what each of several add-ons has to know before it is installed beside the others.
package together

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// maxListed is how many releases a list names at most. Their names take 5 KiB of the request's address then.
const maxListed = 100

// Installs are releases that one reconcile may install on a cluster, as no record of them was seen. The first one in a namespace lists
// the records of all, and looks meanwhile whether the namespace is there.
//
// Key: the reconcile.
// Bound: the releases, and the records that Helm has of them.
// Lost with it: requests, and nothing else.
type Installs struct {
	lists map[record.Release]*list

	mu         sync.Mutex
	namespaces map[string]*namespace
}

// New returns the Installs of the releases.
func New(releases []record.Release) *Installs {
	names, i := map[string][]string{}, &Installs{lists: map[record.Release]*list{}, namespaces: map[string]*namespace{}}
	for _, r := range releases {
		names[r.Namespace] = append(names[r.Namespace], r.Name)
	}
	for namespace, all := range names {
		for some := range slices.Chunk(all, maxListed) {
			l := &list{namespace: namespace, names: some}
			for _, name := range some {
				i.lists[record.Release{Namespace: namespace, Name: name}] = l
			}
		}
	}
	return i
}

// list is what a namespace has of some releases.
type list struct {
	namespace string
	names     []string

	once    sync.Once
	at      time.Time
	records map[record.Release][]record.Summary
	err     error
}

// Records returns the records of a release, the newest first, and when they were listed. The time is zero if the release isn't one of
// the Installs.
func (i *Installs) Records(ctx context.Context, reader client.Reader, of record.Release, now time.Time) ([]record.Summary, time.Time, error) {
	if i == nil || i.lists[of] == nil {
		return nil, time.Time{}, nil
	}
	l := i.lists[of]
	l.once.Do(func() {
		looking := contained.Group{Group: &errgroup.Group{}}
		looking.Go(func() error { i.look(ctx, reader, l.namespace); return nil })
		l.records, l.err = record.ListAll(ctx, reader, l.namespace, l.names)
		_ = looking.Wait() // which panics if the look did
		l.at = now
	})
	return slices.Clone(l.records[of]), l.at, l.err
}

// namespace says whether a namespace is there, or was missing a moment ago. Neither may be known.
type namespace struct {
	mu                 sync.Mutex
	isThere, isMissing bool
}

// look finds out whether a namespace is there.
func (i *Installs) look(ctx context.Context, reader client.Reader, name string) {
	n := i.namespace(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := reader.Get(ctx, client.ObjectKey{Name: name}, found)
	n.isThere, n.isMissing = err == nil && found.DeletionTimestamp == nil, apierrors.IsNotFound(err)
}

// EnsureNamespace calls ensure, unless the namespace is there: it was seen, or another call has succeeded. It waits for one that is under
// way. Ensure gets whether the namespace was missing a moment ago.
func (i *Installs) EnsureNamespace(name string, ensure func(isMissing bool) error) error {
	if i == nil {
		return ensure(false)
	}
	n := i.namespace(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isThere {
		return nil
	}
	err := ensure(n.isMissing)
	n.isThere = err == nil
	return err
}

func (i *Installs) namespace(name string) *namespace {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.namespaces[name] == nil {
		i.namespaces[name] = &namespace{}
	}
	return i.namespaces[name]
}
