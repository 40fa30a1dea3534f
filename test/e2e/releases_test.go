// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// helmStorage is Helm's own view of the releases in a namespace.
func (s *server) helmStorage(namespace string) *storage.Storage {
	return storage.Init(driver.NewSecrets(s.clientset.CoreV1().Secrets(namespace)))
}

// history are the revisions of a release, the oldest first, as "helm history"
// has them.
func (s *server) history(t *testing.T, namespace, name string) []*helmrelease.Release {
	t.Helper()
	found, err := s.helmStorage(namespace).History(name)
	if err != nil {
		t.Fatalf("reading the history of release %s/%s with Helm's library: %v", namespace, name, err)
	}
	var releases []*helmrelease.Release
	for _, r := range found {
		release, ok := r.(*helmrelease.Release)
		if !ok {
			t.Fatalf("Helm's library returns a %T", r)
		}
		releases = append(releases, release)
	}
	slices.SortFunc(releases, func(a, b *helmrelease.Release) int { return cmp.Compare(a.Version, b.Version) })
	return releases
}

// releaseState is what "helm list" says of a release: its newest revision and
// the status of that.
type releaseState struct {
	revision int
	status   common.Status
}

// release returns the newest revision; zero if there is no such release.
func (s *server) release(t *testing.T, namespace, name string) releaseState {
	t.Helper()
	found, err := s.helmStorage(namespace).ListReleases()
	if err != nil {
		t.Fatalf("listing the releases of namespace %s with Helm's library: %v", namespace, err)
	}
	var newest releaseState
	for _, r := range found {
		release, ok := r.(*helmrelease.Release)
		if !ok {
			t.Fatalf("Helm's library returns a %T", r)
		}
		if release.Name == name && release.Version > newest.revision {
			newest = releaseState{revision: release.Version, status: release.Info.Status}
		}
	}
	return newest
}
