// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
)

// Two fields with the same address share an answer, and each is told of its own.
func TestSharedAnswersNameTheFieldThatAsks(t *testing.T) {
	c := startCluster(t)
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	sources, _ := remoteSources(t, Options{Client: c.counted, Metadata: c.metadata})
	at := addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("files"), SecretRef: &addonsv1.CredentialsReference{Name: "registry"}}, Version: "1.0.0"}
	kustomization := reference.KustomizationOf("team-a", &addonsv1.KustomizationSource{ArtifactSource: at})
	manifests := reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: at})
	const missing = ".secretRef: Secret team-a/registry: there is no such Secret; create it in this namespace"

	_, err := sources.Resolve(t.Context(), kustomization)
	expectError(t, err, failure.SourceUnauthorized, "kustomization.oci"+missing)
	_, err = sources.Resolve(t.Context(), manifests)
	expectError(t, err, failure.SourceUnauthorized, "manifests.oci"+missing)
}
