// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
)

// secretType is Helm's.
const secretType corev1.SecretType = "helm.sh/release.v1"

// maxSecret is how much the data of a new Secret may hold. The API server's limit is
// 1 MiB (corev1.MaxSecretSize): see [Record.limit].
const maxSecret = 1000_000

// Writer creates and updates Secrets. It needs to take no more over from the API server's answer than their metadata.
type Writer interface {
	Create(ctx context.Context, secret client.Object, opts ...client.CreateOption) error
	Update(ctx context.Context, secret client.Object, opts ...client.UpdateOption) error
}

// Store reads and writes the records of one release. It remembers the payload of
// those that it read or wrote by their UID and resourceVersion, so that reading
// an unchanged record again costs nothing. It is not for concurrent use.
type Store struct {
	Client client.Client
	// Writer creates and updates the Secrets. Nil is for stores that only read.
	Writer  Writer
	Release Release
	Clock   clock.PassiveClock
	// FieldManager of the writes.
	FieldManager string
	// Hold counts how much memory records take, before they take it; with a negative number, that they take less. Nil allows all.
	Hold func(ctx context.Context, bytes int64) error

	cache map[types.UID]*Record
}

// List returns the release's records, the newest first. It reads metadata only: one request.
func (s *Store) List(ctx context.Context) ([]Summary, error) {
	all, err := ListAll(ctx, s.Client, s.Release.Namespace, []string{s.Release.Name})
	if err != nil {
		return nil, err
	}
	records := all[s.Release]
	maps.DeleteFunc(s.cache, func(uid types.UID, _ *Record) bool {
		return !slices.ContainsFunc(records, func(r Summary) bool { return r.UID == uid })
	})
	return records, nil
}

// ListAnd returns the release's records as [Store.List] does, and reads the one that is expected to be the newest at the same time, by
// the name of its Secret. It is there for Load then, if it is as it was listed. No record is expected by "".
func (s *Store) ListAnd(ctx context.Context, expected string) ([]Summary, error) {
	if expected == "" {
		return s.List(ctx)
	}
	var secret *corev1.Secret
	reading, _ := contained.NewGroup(ctx)
	reading.Go(func() (err error) { secret, err = s.read(ctx, expected); return err })
	records, err := s.List(ctx)
	if reading.Wait() != nil || err != nil { // if it can't be read, Load tells why
		return records, err
	}
	if r, err := s.decode(ctx, secret); err == nil {
		s.remember(r)
	}
	return records, nil
}

// read reads a Secret of the release's namespace.
func (s *Store) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Release.Namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("reading the record %s/%s: %w", s.Release.Namespace, name, err)
	}
	return secret, nil
}

// Load returns the record. It is the caller's until it is written.
func (s *Store) Load(ctx context.Context, summary Summary) (*Record, error) {
	if r, ok := s.cache[summary.UID]; ok && r.ResourceVersion == summary.ResourceVersion {
		return r, nil
	}
	secret, err := s.read(ctx, summary.SecretName)
	if err != nil {
		return nil, err
	}
	r, err := s.decode(ctx, secret)
	if err != nil {
		return nil, fmt.Errorf("decoding the record %s/%s: %w", s.Release.Namespace, summary.SecretName, err)
	}
	if summary.Complete && r.State == nil { // it is Helm's alone since it was listed
		return nil, r.unreadable(errNoState)
	}
	s.remember(r)
	return r, nil
}

// Newest returns the newest record, nil if there is none that Chandler wrote last.
func (s *Store) Newest(ctx context.Context) (*Record, error) {
	records, err := s.List(ctx)
	if err != nil || len(records) == 0 || !records[0].Complete {
		return nil, err
	}
	return s.Load(ctx, records[0])
}

var errNoState = errors.New("what Chandler keeps beside Helm's record is gone")

// Create writes a new record. The error is a [*Fault] if it can't be stored at all.
func (s *Store) Create(ctx context.Context, r *Record) error {
	r.UID, r.ResourceVersion = "", ""
	secret, err := s.encode(ctx, r)
	if err != nil {
		return err
	}
	if err := s.Writer.Create(ctx, secret, client.FieldOwner(s.FieldManager)); err != nil {
		return unwritten(secret, err)
	}
	return s.written(r, secret)
}

// Update writes a record that was loaded or created, unless somebody else wrote
// it since: then the error is a conflict, and the record is forgotten.
func (s *Store) Update(ctx context.Context, r *Record) error {
	secret, err := s.encode(ctx, r)
	if err == nil {
		err = s.replace(ctx, secret)
	}
	if err != nil {
		s.forget(r)
		return err
	}
	return s.written(r, secret)
}

// replace writes a Secret that was read or written before.
func (s *Store) replace(ctx context.Context, secret *corev1.Secret) error {
	if err := s.Writer.Update(ctx, secret, client.FieldOwner(s.FieldManager)); err != nil {
		return unwritten(secret, err)
	}
	return nil
}

// Size returns how many bytes the records in memory take.
func (s *Store) Size() (size int64) {
	for _, r := range s.cache {
		size += r.size
	}
	return size
}

func (s *Store) hold(ctx context.Context, bytes int64) error {
	if s.Hold == nil {
		return nil
	}
	return s.Hold(ctx, bytes)
}

// forget drops a record from memory.
func (s *Store) forget(r *Record) { delete(s.cache, r.UID) }

// Delete deletes Secrets of this release by name. A Secret that is gone is no error.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Release.Namespace, Name: name}}
		if err := s.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return unwritten(secret, err)
		}
	}
	return nil
}

// written takes over what the server made of a record.
func (s *Store) written(r *Record, secret *corev1.Secret) error {
	summary, ok := SummaryOf(&secret.ObjectMeta)
	if !ok || summary.UID == "" || summary.Release != s.Release || summary.Revision != r.Revision {
		s.forget(r)
		return &Fault{Kind: Unanswered, Secret: s.Release.Namespace + "/" + SecretName(s.Release.Name, r.Revision)}
	}
	r.Summary = summary
	s.remember(r)
	return nil
}

func (s *Store) remember(r *Record) {
	if s.cache == nil {
		s.cache = make(map[types.UID]*Record)
	}
	s.cache[r.UID] = r
}
