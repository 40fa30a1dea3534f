// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/fleet"
)

// Value is what a key of a Secret holds.
type Value struct {
	// Data is empty if there is none.
	Data []byte
	// Problem says why there is no new Data although the Secret exists, as the end of a sentence
	// that begins with its name.
	Problem string

	secret          types.NamespacedName
	resourceVersion string // empty: read again
}

// Reader reads Secrets of the manager's cluster, whose metadata a controller watches.
//
// Key: the cluster.
// Bound: the clusters of the source.
// Lost with it: each Secret is read once more.
type Reader struct {
	metadata client.Reader // cached
	live     client.Reader

	mu   sync.Mutex
	read map[types.NamespacedName]Value // by cluster
}

func newReader(metadata, live client.Reader) *Reader {
	return &Reader{metadata: metadata, live: live, read: map[types.NamespacedName]Value{}}
}

// Read returns what a key of a cluster's Secret holds. The Secret is read only if the watched
// metadata says that it has changed, or tells nothing about it. When reading
// fails, what was read before stays.
func (r *Reader) Read(ctx context.Context, cluster, secret types.NamespacedName, key string) (Value, error) {
	last := r.use(cluster, secret) // before it is read, so that no change is missed
	seen := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	if err := r.metadata.Get(ctx, secret, seen); client.IgnoreNotFound(err) != nil {
		return last, fmt.Errorf("getting the metadata of Secret %s: %w", secret, err)
	}
	if last.resourceVersion != "" && last.resourceVersion == seen.ResourceVersion {
		return last, nil
	}

	object := &corev1.Secret{}
	err := r.live.Get(ctx, secret, object)
	switch {
	case apierrors.IsNotFound(err):
		return r.keep(cluster, Value{secret: secret}), nil
	case err != nil:
		last.resourceVersion = ""
		last.Problem = "can't be read (" + cmp.Or(string(apierrors.ReasonForError(err)), "the API server does not answer") + ")"
		return r.keep(cluster, last), fmt.Errorf("getting Secret %s: %w", secret, err)
	}
	value := Value{secret: secret, resourceVersion: object.ResourceVersion, Data: object.Data[key]}
	if len(value.Data) == 0 {
		value.Data, value.Problem = nil, fmt.Sprintf("has no data under the key %q", key)
	}
	return r.keep(cluster, value), nil
}

// Member returns a cluster whose kubeconfig is in a Secret.
func (r *Reader) Member(ctx context.Context, cluster, secret types.NamespacedName, key string) (fleet.Member, error) {
	value, err := r.Read(ctx, cluster, secret, key)
	return fleet.Member{Kubeconfig: value.Data, Problem: value.Problem, Origin: "Secret " + secret.String()}, err
}

// expire has the Secret of a cluster read at the next Read, whatever its metadata say.
func (r *Reader) expire(cluster types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.read[cluster]; ok {
		last.resourceVersion = ""
		r.read[cluster] = last
	}
}

// Forget drops what was read for a cluster.
func (r *Reader) Forget(cluster types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, cluster)
}

// usersOf returns the clusters whose credentials are in a Secret.
func (r *Reader) usersOf(_ context.Context, secret client.Object) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var users []reconcile.Request
	for cluster, value := range r.read {
		if value.secret == client.ObjectKeyFromObject(secret) {
			users = append(users, reconcile.Request{NamespacedName: cluster})
		}
	}
	return users
}

// use notes which Secret a cluster uses, and returns what was last read of it.
func (r *Reader) use(cluster, secret types.NamespacedName) Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read[cluster].secret != secret {
		r.read[cluster] = Value{secret: secret}
	}
	return r.read[cluster]
}

func (r *Reader) keep(cluster types.NamespacedName, value Value) Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[cluster] = value
	return value
}
