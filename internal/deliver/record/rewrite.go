// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"strconv"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if r, ok := s.cache[summary.UID]; ok && r.ResourceVersion == summary.ResourceVersion && r.IsIntact() { // the new revision was made beside it
		r.SetStatus(status, description)
		return s.Update(ctx, r)
	}
	secret, err := s.read(ctx, summary.SecretName)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	in := s.reader(ctx)
	release, err := in.decodeRelease(secret.Data[releaseKey])
	if in.refused != nil {
		return in.refused
	}
	if err != nil || secret.Labels[helmOwnerLabel] != ownerHelm {
		return nil //nolint:nilerr // there is nothing to write it into
	}
	release.SetStatus(status, description)
	if secret.Data[releaseKey], err = (&writer{}).encodeRelease(release); err != nil {
		return fmt.Errorf("encoding revision %d of release %s: %w", summary.Revision, s.Release, err)
	}
	secret.Labels[helmStatusLabel] = status.String()
	secret.Labels[helmModifiedLabel] = strconv.FormatInt(s.Clock.Now().Unix(), 10)
	delete(s.cache, summary.UID)
	if err := s.hold(ctx, -3*in.size); err != nil {
		return err
	}
	return s.replace(ctx, secret)
}

// Plain turns a record into one that only Helm's storage knows: without our labels,
// annotations and keys.
func (s *Store) Plain(ctx context.Context, r *Record) error {
	s.forget(r)
	secret, _, err := s.secretOf(&Record{Summary: r.Summary, Helm: r.Helm})
	if err != nil {
		return err
	}
	for _, label := range ownLabels {
		delete(secret.Labels, label)
	}
	secret.Annotations = nil
	return s.replace(ctx, secret)
}

// Surplus returns the Secrets that can go: the oldest records beyond max, but for
// one that is deployed. The newest record's inventory contains that of all older ones, so nothing is forgotten with them.
func Surplus(records []Summary, maxHistory int) []string {
	var names []string
	for i, r := range records {
		if i >= max(maxHistory, 1) && r.Status != helmcommon.StatusDeployed.String() {
			names = append(names, r.SecretName)
		}
	}
	return names
}
