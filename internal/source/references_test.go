// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
)

// atPath refers to a path of the artifact root.
func atPath(path string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Path: path}}
}

func inConfigMap(namespace, name, key string) reference.Reference {
	return reference.Reference{Namespace: namespace, Chart: addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: name, Key: key}}}
}

func inSecret(namespace, name, key string) reference.Reference {
	return reference.Reference{Namespace: namespace, Chart: addonsv1.ChartSource{Secret: &addonsv1.ArtifactReference{Name: name, Key: key}}}
}

// inRegistry refers to a chart in a registry.
func inRegistry(url, version string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: url}, Version: version}}
}

// inRepository refers to a chart in a Helm repository.
func inRepository(url, version string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: url, Chart: "demo"}, Version: version}}
}

// inRelease refers to a chart of a release at a host like GitHub.
func inRelease(url, version string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{GitHub: &addonsv1.GitHubSource{URL: url}, Version: version}}
}

// atAddress refers to an archive at an address of a server without TLS.
func atAddress(url, digest string) reference.Reference {
	return plainly(reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{HTTP: &addonsv1.HTTPSource{URL: url, Digest: digest}}})
}

// plainly is the same reference with leave to be asked without TLS.
func plainly(ref reference.Reference) reference.Reference {
	ref.Chart = *ref.Chart.DeepCopy()
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.PlainHTTP = ptr.To(true)
	case ref.Chart.Helm != nil:
		ref.Chart.Helm.PlainHTTP = ptr.To(true)
	case ref.Chart.HTTP != nil:
		ref.Chart.HTTP.PlainHTTP = ptr.To(true)
	case ref.Chart.GitHub != nil:
		ref.Chart.GitHub.PlainHTTP = ptr.To(true)
	}
	return ref
}

// with is the same reference with credentials of a Secret.
func with(secret string, ref reference.Reference) reference.Reference {
	ref.Chart = *ref.Chart.DeepCopy()
	named := &addonsv1.CredentialsReference{Name: secret}
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.SecretRef = named
	case ref.Chart.Helm != nil:
		ref.Chart.Helm.SecretRef = named
	case ref.Chart.HTTP != nil:
		ref.Chart.HTTP.SecretRef = named
	case ref.Chart.GitHub != nil:
		ref.Chart.GitHub.SecretRef = named
	}
	return ref
}

// as is the same reference to another kind of artifact.
func as(kind artifact.Kind, ref reference.Reference) reference.Reference {
	ref.Kind = kind
	return ref
}

// of is the same reference to another version.
func of(version string, ref reference.Reference) reference.Reference {
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	return ref
}

func TestReferencesThatCantBeUsed(t *testing.T) {
	sources := newSources(t, source.Options{})
	for name, test := range map[string]struct {
		ref           reference.Reference
		reason, field string
	}{
		"no artifact root": {atPath("demo.tgz"), failure.SourceDisabled, "chart.path"},
		"no such port":     {inRepository("https://charts.example.org:99999", "1.0.0"), failure.ArtifactRefused, "chart.helm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sources.Resolve(t.Context(), test.ref)
			expectRefused(t, err, test.reason)
			_, again := sources.Fetch(t.Context(), test.ref, "sha256:x")
			expectRefused(t, again, test.reason)
			must.Equal(t, test.field, asError(t, err).Field, "it is about")
		})
	}
}

// Two fields with the same address share an answer, and each is told of its own.
func TestSharedAnswersNameTheFieldThatAsks(t *testing.T) {
	sources, _ := remoteSources(t, source.Options{Client: newCluster(t)})
	at := addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:1/files", SecretRef: &addonsv1.CredentialsReference{Name: "registry"}}, Version: "1.0.0"}
	for field, ref := range map[string]reference.Reference{
		"kustomization.oci.secretRef": reference.KustomizationOf("team-a", &addonsv1.KustomizationSource{ArtifactSource: at}),
		"manifests.oci.secretRef":     reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: at}),
	} {
		_, err := sources.Resolve(t.Context(), ref)
		expectRefused(t, err, failure.SourceUnauthorized)
		if got := asError(t, err); got.Field != field || got.Subject != "Secret team-a/registry" || !got.Wait {
			t.Errorf("got %+v, want one about %s", got, field)
		}
	}
}
