// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// encode makes the Secret of a record. Continuation Secrets are made when the
// record is new and doesn't fit in one.
func (s *Store) encode(r *Record) (secret *corev1.Secret, parts []*corev1.Secret, err error) {
	if !r.InParts() {
		if secret, err = s.secretOf(r); err != nil {
			return nil, nil, err
		}
		if size(secret) <= r.limit() {
			return secret, nil, nil
		}
		if r.UID != "" {
			return nil, nil, tooLarge(size(secret), r.limit())
		}
		if parts, err = s.partsOf(r); err != nil {
			return nil, nil, err
		}
	}
	slim := *r
	slim.Helm, slim.CRDs = withoutBulk(r.Helm, r.State.Parts), nil
	if secret, err = s.secretOf(&slim); err != nil {
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
	turn := cmp.Or(s.Decoding, unlimited)
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	r, err := decode(secret)
	turn.Release(1)
	if err != nil {
		return nil, &Fault{Kind: Damaged, Secret: secret.Namespace + "/" + secret.Name, Err: err}
	}
	if r.InParts() {
		packed, err := s.readParts(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := turn.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		err = r.join(packed)
		turn.Release(1)
		if err != nil {
			return nil, r.unreadable(err)
		}
	}
	if i := slices.Index(r.CRDs, nil); i >= 0 {
		return nil, r.unreadable(fmt.Errorf("CRD %d is null", i))
	}
	r.holds = r.contentDigest()
	return r, nil
}

// unlimited bounds nothing: a single record may be decoded at any time.
var unlimited = semaphore.NewWeighted(math.MaxInt64)

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

// partsOf moves what is large of a new record into continuation Secrets, and
// notes them in its state.
func (s *Store) partsOf(r *Record) ([]*corev1.Secret, error) {
	large := bulk{Config: r.Helm.Config, Hooks: map[string]string{}, CRDs: r.CRDs}
	for i, h := range r.Helm.Hooks {
		large.Hooks[strconv.Itoa(i)] = h.Manifest
	}
	packed, err := packAround(r.Helm.Manifest, &large.Manifest, &large)
	if err != nil {
		return nil, err
	}
	if len(packed) > maxRecord {
		return nil, tooLarge(len(packed), maxRecord)
	}
	var secrets []*corev1.Secret
	for i, chunk := range slices.Collect(slices.Chunk(packed, maxSecret)) {
		sum := sha(chunk)
		name := fmt.Sprintf("%s.part%d.%s", SecretName(r.Name, r.Revision), i+1, sum[:10])
		r.State.Parts = append(r.State.Parts, Part{Name: name, SHA256: sum})
		secrets = append(secrets, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: map[string]string{
				helmNameLabel:                r.Name,
				helmOwnerLabel:               ownerParts,
				helmVersionLabel:             strconv.Itoa(r.Revision),
				addonsv1.AddonLabel:          r.Name,
				addonsv1.AddonNamespaceLabel: r.Namespace,
			}},
			Type: partSecretType,
			Data: map[string][]byte{partKey: chunk},
		})
	}
	return secrets, nil
}

// readParts reads a record's continuation Secrets, and returns what they hold together.
func (s *Store) readParts(ctx context.Context, r *Record) ([]byte, error) {
	var packed []byte
	for _, p := range r.State.Parts {
		secret := &corev1.Secret{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Release.Namespace, Name: p.Name}, secret); err != nil {
			if err = fmt.Errorf("reading its part %s: %w", p.Name, err); apierrors.IsNotFound(err) {
				err = r.unreadable(err)
			}
			return nil, err
		}
		if sha(secret.Data[partKey]) != p.SHA256 {
			return nil, r.unreadable(fmt.Errorf("its part %s has been changed: %w", p.Name, ErrChanged))
		}
		if packed = append(packed, secret.Data[partKey]...); len(packed) > maxRecord {
			return nil, r.unreadable(fmt.Errorf("its parts have more than %d bytes together: %w", maxRecord, ErrChanged))
		}
	}
	return packed, nil
}

// join takes what its continuation Secrets hold back into a record.
func (r *Record) join(packed []byte) error {
	var large bulk
	if err := unpackJSON(packed, maxValues, &large); err != nil {
		return fmt.Errorf("unpacking its parts: %w", err)
	}
	r.Helm.Manifest, r.Helm.Config, r.CRDs = large.Manifest, large.Config, large.CRDs
	for i, h := range r.Helm.Hooks {
		h.Manifest = large.Hooks[strconv.Itoa(i)]
	}
	return nil
}

// ErrChanged says that others have changed a record.
var ErrChanged = errors.New("it isn't as it was written")
