// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"

	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Keys identifies the credentials that the reference's source is asked with, and the
// keys that its signatures are verified with, as far as they are in objects that the
// reference names. It takes no request. While they are the same, so is this; that
// they change is an event.
func (s *Sources) Keys(ctx context.Context, ref reference.Reference) string {
	if s.objects == nil {
		return ""
	}
	var versions []string
	if ref.SecretRef() != nil {
		versions = append(versions, s.objects.Version(ctx, ref.Secret()))
	}
	for _, trusted := range ref.Chart.Verify.References() {
		versions = append(versions, s.objects.Version(ctx, reference.Object{Kind: trusted.Kind, Namespace: ref.Namespace, Name: trusted.Name}))
	}
	return strings.Join(versions, ",")
}
