// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// encode makes the Secret of a record. The error is a [*Fault] if the record doesn't fit.
func (s *Store) encode(r *Record) (*corev1.Secret, error) {
	secret, err := s.secretOf(r)
	if err == nil && size(secret) > r.limit() {
		err = &Fault{Kind: TooLarge, Err: fmt.Errorf(
			"takes %d bytes when compressed, more than the %d that may be stored", size(secret), r.limit())}
	}
	return secret, err
}

// limit of the Secret's data, in bytes. A new record leaves room for what is noted in it
// until it is complete: progress, and the UID of each object.
func (r *Record) limit() int {
	const uid = 40 // packed, 22 or so
	if r.UID != "" {
		return corev1.MaxSecretSize
	}
	return maxSecret - uid*len(r.State.Inventory)
}

// decode reads a Secret. The error is a [*Fault] if the content is damaged, or isn't all there.
func (s *Store) decode(ctx context.Context, secret *corev1.Secret) (*Record, error) {
	turn := cmp.Or(s.Decoding, unlimited)
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	r, err := decode(secret)
	turn.Release(1)
	if err != nil {
		return nil, &Fault{Kind: Damaged, Secret: secret.Namespace + "/" + secret.Name, Err: err}
	}
	if r.State != nil && len(r.State.Parts) > 0 {
		return nil, &Fault{Kind: InParts, Secret: secret.Namespace + "/" + secret.Name}
	}
	if i := slices.Index(r.CRDs, nil); i >= 0 {
		return nil, r.unreadable(fmt.Errorf("CRD %d is null", i))
	}
	r.holds = r.contentDigest()
	return r, nil
}

// unlimited bounds nothing: a single record may be decoded at any time.
var unlimited = semaphore.NewWeighted(math.MaxInt64)

// decode reads what a Secret has.
func decode(secret *corev1.Secret) (*Record, error) {
	summary, ok := SummaryOf(&secret.ObjectMeta)
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
		if err := unpackJSON(data, maxValues, &r.CRDs); err != nil {
			return nil, fmt.Errorf("reading key %s: %w", crdsKey, err)
		}
	}
	if summary.Complete && (r.State == nil || r.State.Format != currentFormat) {
		return nil, fmt.Errorf("its key %s is missing, or of another format than %d", stateKey, currentFormat)
	}
	return r, nil
}

// secretOf returns a record as a Secret, whatever its size.
func (s *Store) secretOf(r *Record) (*corev1.Secret, error) {
	release, err := encodeRelease(r.Helm)
	data := map[string][]byte{releaseKey: release}
	if err == nil && r.State != nil {
		data[stateKey], err = packJSON(r.State)
	}
	if err == nil && len(r.CRDs) > 0 {
		data[crdsKey], err = packJSON(r.CRDs)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding revision %d of release %s: %w", r.Revision, s.Release, err)
	}
	return &corev1.Secret{ObjectMeta: r.metadata(s.Clock.Now()), Type: secretType, Data: data}, nil
}

func size(secret *corev1.Secret) int {
	n := 0
	for k, v := range secret.Data {
		n += len(k) + len(v)
	}
	return n
}

const watchLabel = clusterv1.WatchLabel
