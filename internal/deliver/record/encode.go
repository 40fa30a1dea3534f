// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// encode makes the Secret of a record. Continuation Secrets are made when the
// record is new and doesn't fit in one.
func (s *Store) encode(r *Record) (*corev1.Secret, []*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: r.metadata(s.Clock.Now()), Type: secretType, Data: map[string][]byte{}}
	var parts []*corev1.Secret
	if !r.InParts() {
		crds, err := json.Marshal(r.CRDs)
		if err != nil {
			return nil, nil, err
		}
		if len(r.CRDs) == 0 {
			crds = nil
		}
		if err := fill(secret, r, crds); err != nil {
			return nil, nil, err
		}
		if size(secret) <= r.limit() {
			return secret, nil, nil
		}
		if r.UID != "" {
			return nil, nil, tooLarge(size(secret), r.limit())
		}
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
	if size(secret) > r.limit() {
		return nil, nil, tooLarge(size(secret), r.limit())
	}
	return secret, parts, nil
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

// decode reads a Secret and its continuations. The error is a [*Fault] if the content is damaged.
func (s *Store) decode(ctx context.Context, secret *corev1.Secret) (*Record, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	r, err := decode(secret)
	s.end()
	if err != nil {
		return nil, &Fault{Kind: Damaged, Secret: secret.Namespace + "/" + secret.Name, Err: err}
	}
	if r.InParts() {
		packed, err := s.readParts(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
		err = r.join(packed)
		s.end()
		if err != nil {
			return nil, r.unreadable(err)
		}
	}
	r.holds = r.contentDigest()
	return r, nil
}

// begin waits until no more records are decoded than may be. After it, end has to be called.
func (s *Store) begin(ctx context.Context) error {
	if s.Decoding == nil {
		return nil
	}
	return s.Decoding.Acquire(ctx, 1)
}

func (s *Store) end() {
	if s.Decoding != nil {
		s.Decoding.Release(1)
	}
}

// decode reads a Secret alone.
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
		plain, err := inflate(data)
		if err == nil {
			r.CRDs, err = crdsFromJSON(plain)
		}
		if err != nil {
			return nil, fmt.Errorf("reading key %s: %w", crdsKey, err)
		}
	}
	if summary.Complete && (r.State == nil || r.State.Format != currentFormat) {
		return nil, fmt.Errorf("its key %s is missing, or of another format than %d", stateKey, currentFormat)
	}
	return r, nil
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
