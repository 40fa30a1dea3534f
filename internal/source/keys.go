// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Keys identifies the credentials that the reference's source is asked with, and the
// keys that its signatures are verified with, as far as they are in objects that the
// reference names. It takes no request. While they are the same, so is this; that
// they change is an event.
func (s *Sources) Keys(ctx context.Context, ref Reference) string {
	if s.objects == nil {
		return ""
	}
	var versions []string
	if secret := ref.secretRef(); secret != nil {
		versions = append(versions, s.objects.version(ctx, objectKey{kind: kindSecret, namespace: ref.Namespace, name: secret.Name}))
	}
	for _, trusted := range ref.Chart.Verify.References() {
		versions = append(versions, s.objects.version(ctx, objectKey{kind: trusted.Kind, namespace: ref.Namespace, name: trusted.Name}))
	}
	return strings.Join(versions, ",")
}

// Uses says whether the reference reads a ConfigMap or Secret of its namespace: for
// what it refers to, credentials, or keys.
func (r Reference) Uses(kind, name string) bool {
	isIt := func(artifact *addonsv1.ArtifactReference, of string) bool {
		return artifact != nil && of == kind && artifact.Name == name
	}
	if isIt(r.Chart.ConfigMap, kindConfigMap) || isIt(r.Chart.Secret, kindSecret) {
		return true
	}
	if secret := r.secretRef(); secret != nil && kind == kindSecret && secret.Name == name {
		return true
	}
	return slices.ContainsFunc(r.Chart.Verify.References(), func(trusted addonsv1.TrustReference) bool {
		return trusted.Kind == kind && trusted.Name == name
	})
}
