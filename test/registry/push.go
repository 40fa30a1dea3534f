// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"io"
	"maps"
	"slices"
	"testing"

	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/cluster-chandler/chandler/test/must"
)

// Push puts a chart's archive into the registry with Helm's own client, as
// `helm push` does. It returns the manifest's digest.
func (r *Registry) Push(t testing.TB, archive []byte, repository, tag string) string {
	t.Helper()
	return r.push(t, archive, repository, tag)
}

// PushWithProvenance does that with the archive's provenance file beside it.
func (r *Registry) PushWithProvenance(t testing.TB, archive, file []byte, repository, tag string) string {
	t.Helper()
	return r.push(t, archive, repository, tag, helmregistry.PushOptProvData(file))
}

func (r *Registry) push(t testing.TB, archive []byte, repository, tag string, with ...helmregistry.PushOption) string {
	t.Helper()
	options := []helmregistry.ClientOption{
		helmregistry.ClientOptWriter(io.Discard),
		helmregistry.ClientOptHTTPClient(r.client(t)),
	}
	if users := slices.Sorted(maps.Keys(r.options.Users)); len(users) > 0 {
		options = append(options, helmregistry.ClientOptBasicAuth(users[0], r.options.Users[users[0]]))
	}
	if r.options.PlainHTTP {
		options = append(options, helmregistry.ClientOptPlainHTTP())
	}
	client, err := helmregistry.NewClient(options...)
	must.Succeed(t, err)
	pushed, err := client.Push(archive, r.Host+"/"+repository+":"+tag, append(with, helmregistry.PushOptStrictMode(false))...)
	must.Succeed(t, err)
	return pushed.Manifest.Digest
}
