// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rewrite changes what the metadata of a record says, and nothing else, if nobody else wrote the
// record since. It returns what is there then.
func (s *Store) Rewrite(ctx context.Context, before, after Summary) (Summary, error) {
	was := &metav1.PartialObjectMetadata{ObjectMeta: (&Record{Summary: before}).metadata(before.ModifiedAt)}
	is := &metav1.PartialObjectMetadata{ObjectMeta: (&Record{Summary: after}).metadata(before.ModifiedAt)}
	is.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	was.SetGroupVersionKind(is.GroupVersionKind())
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Patch(ctx, is, patch, client.FieldOwner(s.FieldManager)); err != nil {
		return before, unwritten(is, err)
	}
	after.ResourceVersion = is.ResourceVersion
	if r, ok := s.cache[after.UID]; ok && r.ResourceVersion == before.ResourceVersion {
		r.Summary = after
	}
	return after, nil
}

// SetStatus changes Helm's status of a record, whichever program wrote it, and nothing else. A
// record that is gone or damaged is left. So is one that has lost its labels since it was
// listed: Helm doesn't take that for a record any more.
func (s *Store) SetStatus(ctx context.Context, summary Summary, status helmcommon.Status, description string) error {
	secret := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Release.Namespace, Name: summary.SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the record %s/%s: %w", s.Release.Namespace, summary.SecretName, err)
	}
	release, err := decodeRelease(secret.Data[releaseKey])
	if err != nil || secret.Labels[helmOwnerLabel] != ownerHelm {
		return nil //nolint:nilerr // there is nothing to write it into
	}
	release.SetStatus(status, description)
	if secret.Data[releaseKey], err = encodeRelease(release); err != nil {
		return fmt.Errorf("encoding revision %d of release %s: %w", summary.Revision, s.Release, err)
	}
	secret.Labels[helmStatusLabel] = status.String()
	secret.Labels[helmModifiedLabel] = strconv.FormatInt(s.Clock.Now().Unix(), 10)
	delete(s.cache, summary.UID)
	return s.replace(ctx, secret)
}

// Plain turns a record into one that only Helm's storage knows: without our labels,
// annotations and keys. A record that is too large for a Secret stays in its continuation Secrets,
// with the inventory, so that it can be adopted again.
func (s *Store) Plain(ctx context.Context, r *Record) error {
	s.forget(r)
	plain := &Record{Summary: r.Summary, Helm: r.Helm}
	if r.InParts() {
		plain.Helm = withoutBulk(r.Helm, r.State.Parts)
		plain.State = &State{Format: r.State.Format, Inventory: slices.Clone(r.State.Inventory), Parts: r.State.Parts}
		for i := range plain.State.Inventory { // which is Helm's from now on
			plain.State.Inventory[i].Helm, plain.State.Inventory[i].UID = true, ""
		}
		for _, p := range r.State.Parts {
			if err := s.disown(ctx, p.Name); err != nil {
				return err
			}
		}
	}
	secret, err := s.secretOf(plain)
	if err != nil {
		return err
	}
	for _, label := range ownLabels {
		delete(secret.Labels, label)
	}
	secret.Annotations = nil
	return s.replace(ctx, secret)
}

// disown takes our labels off a continuation Secret.
func (s *Store) disown(ctx context.Context, name string) error {
	labels := map[string]any{}
	for _, label := range ownLabels {
		labels[label] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	part := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.Release.Namespace, Name: name}}
	part.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := s.Client.Patch(ctx, part, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(s.FieldManager)); err != nil {
		return unwritten(part, err)
	}
	return nil
}

// Surplus returns the Secrets that can go: the oldest records beyond max, but for
// one that is deployed, and continuations of no record. The newest record's
// inventory contains that of all older ones, so nothing is forgotten with them.
func Surplus(records []Summary, parts map[int][]string, newest *Record, maxHistory int) []string {
	var names []string
	kept := map[int]bool{}
	for i, r := range records {
		if i < max(maxHistory, 1) || r.Status == helmcommon.StatusDeployed.String() {
			kept[r.Revision] = true
			continue
		}
		names = append(names, r.SecretName)
	}
	for revision, secrets := range parts {
		for _, name := range secrets {
			wanted := kept[revision]
			if revision == newest.Revision {
				wanted = slices.ContainsFunc(newest.State.Parts, func(p Part) bool { return p.Name == name })
			}
			if !wanted {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
