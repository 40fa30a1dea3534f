// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Types of our Secrets. The first is Helm's.
const (
	secretType     corev1.SecretType = "helm.sh/release.v1"
	partSecretType corev1.SecretType = "addons.cluster.x-k8s.io/release-part"
)

const (
	// maxSecret is how much a Secret's data may hold. The API server's limit is
	// 1 MiB (corev1.MaxSecretSize); progress that is noted later needs some room.
	maxSecret = 1000_000
	// maxRecord is how much a record may hold in all of its Secrets.
	maxRecord = 8 << 20
)

// TooLargeError says that a record doesn't fit in the cluster.
type TooLargeError struct {
	Bytes, Limit int
	// Unpacked says that it would fit, but is more than is ever unpacked again.
	Unpacked bool
}

func (e *TooLargeError) Error() string {
	if e.Unpacked {
		return fmt.Sprintf("the release record takes %d bytes, more than the %d that are read", e.Bytes, e.Limit)
	}
	return fmt.Sprintf("the release record takes %d bytes when compressed, more than the %d that may be stored", e.Bytes, e.Limit)
}

// UnreadableError says that a record is damaged.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Store reads and writes the records of one release. It remembers the payload of
// those that it read or wrote by their UID and resourceVersion, so that reading
// an unchanged record again costs nothing. It is not for concurrent use.
type Store struct {
	Client  client.Client
	Release Release
	Clock   clock.PassiveClock
	// FieldManager of the writes.
	FieldManager string

	cache map[types.UID]*Record
}

// List returns the release's records, the newest first, and the names of the
// continuation Secrets by revision. It reads metadata only: one request.
func (s *Store) List(ctx context.Context) ([]Summary, map[int][]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := s.Client.List(ctx, list, client.InNamespace(s.Release.Namespace),
		client.MatchingLabels{helmNameLabel: s.Release.Name}); err != nil {
		return nil, nil, fmt.Errorf("listing the records of release %s: %w", s.Release, err)
	}
	var records []Summary
	parts := make(map[int][]string)
	seen := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		if summary, ok := summaryOf(&item.ObjectMeta); ok {
			records = append(records, summary)
			seen[item.UID] = true
			continue
		}
		if item.Labels[helmOwnerLabel] == ownerParts {
			revision, _ := strconv.Atoi(item.Labels[helmVersionLabel])
			parts[revision] = append(parts[revision], item.Name)
		}
	}
	for uid := range s.cache {
		if !seen[uid] {
			delete(s.cache, uid)
		}
	}
	newestFirst(records)
	return records, parts, nil
}

// Load returns the record. It is the caller's until it is written; a change that
// isn't written must be undone with Forget.
func (s *Store) Load(ctx context.Context, summary Summary) (*Record, error) {
	if r, ok := s.cache[summary.UID]; ok && r.ResourceVersion == summary.ResourceVersion {
		return r, nil
	}
	secret := &corev1.Secret{}
	if err := s.Client.Get(ctx, s.secretKey(summary.SecretName), secret); err != nil {
		return nil, fmt.Errorf("reading the record %s/%s: %w", s.Release.Namespace, summary.SecretName, err)
	}
	r, err := s.decode(ctx, secret)
	if err != nil {
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) || apierrors.IsNotFound(err) {
			err = &UnreadableError{Err: err}
		}
		return nil, fmt.Errorf("decoding the record %s/%s: %w", s.Release.Namespace, summary.SecretName, err)
	}
	s.remember(r)
	return r, nil
}

// Create writes a new record, after its continuation Secrets if it needs any.
// The error is a *TooLargeError if it can't be stored at all.
func (s *Store) Create(ctx context.Context, r *Record) error {
	r.UID, r.ResourceVersion = "", ""
	secret, parts, err := s.encode(r)
	if err != nil {
		return fmt.Errorf("encoding revision %d of release %s: %w", r.Revision, s.Release, err)
	}
	for _, p := range parts {
		// The name contains the content's digest: what is there already is equal.
		if err := s.Client.Create(ctx, p, client.FieldOwner(s.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("writing %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	if err := s.Client.Create(ctx, secret, client.FieldOwner(s.FieldManager)); err != nil {
		return fmt.Errorf("writing the record %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	s.written(r, secret)
	return nil
}

// Update writes a record that was loaded or created, unless somebody else wrote
// it since: then the error is a conflict, and the record is forgotten.
func (s *Store) Update(ctx context.Context, r *Record) error {
	secret, _, err := s.encode(r)
	if err != nil {
		s.Forget(r)
		return fmt.Errorf("encoding revision %d of release %s: %w", r.Revision, s.Release, err)
	}
	if err := s.Client.Update(ctx, secret, client.FieldOwner(s.FieldManager)); err != nil {
		s.Forget(r)
		return fmt.Errorf("writing the record %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	s.written(r, secret)
	return nil
}

// Forget drops a record from memory.
func (s *Store) Forget(r *Record) { delete(s.cache, r.UID) }

// Delete deletes Secrets of this release by name. One that is gone is no error.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Release.Namespace, Name: name}}
		if err := s.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the record %s/%s: %w", s.Release.Namespace, name, err)
		}
	}
	return nil
}

// encode makes the Secret of a record. Continuation Secrets are made when the
// record is new and doesn't fit in one.
func (s *Store) encode(r *Record) (*corev1.Secret, []*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: r.metadata(s.Clock.Now()), Type: secretType, Data: map[string][]byte{}}
	var crds []byte
	if len(r.CRDs) > 0 {
		var err error
		if crds, err = crdsJSON(r.CRDs); err != nil {
			return nil, nil, err
		}
	}
	if len(r.State.Parts) == 0 {
		if err := fill(secret, r, crds); err != nil {
			return nil, nil, err
		}
		if size(secret) <= maxSecret {
			return secret, nil, nil
		}
	}
	var parts []*corev1.Secret
	if len(r.State.Parts) == 0 {
		if r.UID != "" {
			return nil, nil, &TooLargeError{Bytes: size(secret), Limit: maxSecret}
		}
		var err error
		if parts, err = s.partsOf(r, crds); err != nil {
			return nil, nil, err
		}
	}
	slim := *r
	slim.Helm = withoutBulk(r.Helm, r.State.Parts)
	clear(secret.Data)
	if err := fill(secret, &slim, nil); err != nil {
		return nil, nil, err
	}
	if size(secret) > maxSecret {
		return nil, nil, &TooLargeError{Bytes: size(secret), Limit: maxSecret}
	}
	return secret, parts, nil
}

// decode reads a Secret and its continuations.
func (s *Store) decode(ctx context.Context, secret *corev1.Secret) (*Record, error) {
	summary, ok := summaryOf(&secret.ObjectMeta)
	if !ok {
		return nil, errors.New("it isn't a release record")
	}
	release, err := decodeRelease(secret.Data[releaseKey])
	if err != nil {
		return nil, err
	}
	r := &Record{Summary: summary, Helm: release, WatchFilter: secret.Labels[watchLabel]}
	r.Helm.Labels = nil // kept in the Secret's metadata only
	if data, ok := secret.Data[stateKey]; ok {
		r.State = &State{}
		if err := unpackJSON(data, maxFields, r.State); err != nil {
			return nil, fmt.Errorf("reading key %s: %w", stateKey, err)
		}
	}
	if data, ok := secret.Data[crdsKey]; ok {
		plain, err := inflate(data)
		if err == nil {
			r.CRDs, err = crdsFromJSON(plain)
		}
		if err != nil {
			return nil, fmt.Errorf("reading key %s: %w", crdsKey, err)
		}
	}
	if r.State != nil && len(r.State.Parts) > 0 {
		return r, s.join(ctx, r)
	}
	return r, nil
}

// written takes over what the server made of a record.
func (s *Store) written(r *Record, secret *corev1.Secret) {
	if summary, ok := summaryOf(&secret.ObjectMeta); ok {
		r.Summary = summary
	}
	s.remember(r)
}

func (s *Store) remember(r *Record) {
	if s.cache == nil {
		s.cache = make(map[types.UID]*Record)
	}
	s.cache[r.UID] = r
}

func (s *Store) secretKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Release.Namespace, Name: name}
}

// fill writes the parts of a record into a Secret's data.
func fill(secret *corev1.Secret, r *Record, crds []byte) error {
	var err error
	if secret.Data[releaseKey], err = encodeRelease(r.Helm); err != nil {
		return err
	}
	if secret.Data[stateKey], err = packJSON(r.State); err != nil {
		return err
	}
	if len(crds) > 0 {
		if secret.Data[crdsKey], err = deflate(crds); err != nil {
			return err
		}
	}
	return nil
}

func size(secret *corev1.Secret) int {
	n := 0
	for k, v := range secret.Data {
		n += len(k) + len(v)
	}
	return n
}
