// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

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
