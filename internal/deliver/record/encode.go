// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// encode makes the Secret of a record. The error is a [*Fault] if the record doesn't fit.
func (s *Store) encode(ctx context.Context, r *Record) (*corev1.Secret, error) {
	secret, takes, err := s.secretOf(r)
	if err == nil && size(secret) > r.limit() {
		err = &Fault{Kind: TooLarge, Err: fmt.Errorf(
			"takes %d bytes when compressed, more than the %d that may be stored", size(secret), r.limit())}
	}
	if err == nil {
		err = s.hold(ctx, takes-r.size)
		r.size = takes
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
	in := s.reader(ctx)
	r, err := in.record(secret)
	if in.refused != nil {
		return nil, in.refused
	}
	if err != nil {
		return nil, &Fault{Kind: Damaged, Secret: secret.Namespace + "/" + secret.Name, Err: err}
	}
	r.size = in.size
	if err := s.hold(ctx, -2*r.size); err != nil {
		return nil, err
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

// reader returns a reader that counts what it takes.
func (s *Store) reader(ctx context.Context) *reader {
	return &reader{hold: func(bytes int64) error { return s.hold(ctx, bytes) }}
}

// record reads what a Secret has.
func (in *reader) record(secret *corev1.Secret) (*Record, error) {
	summary, ok := SummaryOf(&secret.ObjectMeta)
	if !ok {
		return nil, errors.New("it isn't a release record")
	}
	release, err := in.decodeRelease(secret.Data[releaseKey])
	if err != nil {
		return nil, err
	}
	r := &Record{Summary: summary, Helm: release, WatchFilter: secret.Labels[watchLabel]}
	r.Helm.Labels = nil // kept in the Secret's metadata only
	if data, ok := secret.Data[stateKey]; ok {
		r.State = &State{}
		if err := in.unpackJSON(data, maxFields, r.State); err != nil {
			return nil, fmt.Errorf("reading key %s: %w", stateKey, err)
		}
	}
	if data, ok := secret.Data[crdsKey]; ok {
		if err := in.unpackJSON(data, maxValues, &r.CRDs); err != nil {
			return nil, fmt.Errorf("reading key %s: %w", crdsKey, err)
		}
	}
	if summary.Complete && (r.State == nil || r.State.Format != currentFormat) {
		return nil, fmt.Errorf("its key %s is missing, or of another format than %d", stateKey, currentFormat)
	}
	return r, nil
}

// secretOf returns a record as a Secret, whatever its size, and how many bytes it takes when it is unpacked.
func (s *Store) secretOf(r *Record) (_ *corev1.Secret, takes int64, _ error) {
	out := &writer{}
	release, err := out.encodeRelease(r.Helm)
	data := map[string][]byte{releaseKey: release}
	if err == nil && r.State != nil {
		data[stateKey], err = out.packJSON(r.State)
	}
	if err == nil && len(r.CRDs) > 0 {
		data[crdsKey], err = out.packJSON(r.CRDs)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("encoding revision %d of release %s: %w", r.Revision, s.Release, err)
	}
	return &corev1.Secret{ObjectMeta: r.metadata(s.Clock.Now()), Type: secretType, Data: data}, out.size, nil
}

func size(secret *corev1.Secret) int {
	n := 0
	for k, v := range secret.Data {
		n += len(k) + len(v)
	}
	return n
}

const watchLabel = clusterv1.WatchLabel
