// SPDX-License-Identifier: Apache-2.0

// Package addons has add-ons, their records and a cluster without answers, for tests of the ClusterAddon controller.
package addons

import (
	"net/http"
	"sync"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/connection"
)

// Wanted returns an add-on of a stack.
func Wanted(stack, name string) wanted.Addon {
	return wanted.Addon{Addon: addonsv1.Addon{Name: name}, Stack: stack}
}

// Installed returns the record of an add-on that is deployed. It can be proven.
func Installed(stack, name string, dependsOn ...string) deliver.Summary {
	record := Provable(deliver.Summary{Installed: true, Terms: deliver.Terms{Stack: stack, DependsOn: dependsOn}})
	record.Name, record.Namespace, record.Status, record.Revision = name, "apps", deliver.StatusDeployed, 1
	return record
}

// InRegistry returns an add-on of a chart in a registry that nobody answers for, and its record, of an older spec. Its digest
// is known by that.
func InRegistry(t testing.TB, sources *source.Sources, name string, change func(*wanted.Addon)) (wanted.Addon, deliver.Summary) {
	t.Helper()
	a := Wanted("platform", name)
	a.Namespace, a.Chart.Version, a.Chart.OCI = "apps", "1.0.0", &addonsv1.OCISource{URL: "oci://127.0.0.1:1/" + name}
	a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyIgnore} // so nothing has to be watched
	change(&a)
	record := Installed("platform", name, a.DependsOn...)
	record.Artifact, record.ArtifactVersion, record.Spec = "sha256:1", sources.Version(t.Context(), a.Reference("team")), "older"
	if record.ArtifactVersion == "" {
		t.Fatal("an exact version in a registry has none")
	}
	return a, record
}

// Provable returns a record that can be proven.
func Provable(record deliver.Summary) deliver.Summary {
	record.Complete, record.Content = true, "sha256:1"
	return record
}

// Proofs returns the proofs of records.
func Proofs(records ...deliver.Summary) *releases.Proofs {
	all := &releases.Proofs{}
	for _, r := range records {
		all.Note(r.Release, r.Proof())
	}
	return all
}

// Records returns the records by their releases.
func Records(records ...deliver.Summary) map[deliver.Release]deliver.Summary {
	all := map[deliver.Release]deliver.Summary{}
	for _, r := range records {
		all[r.Release] = r
	}
	return all
}

// Secrets returns sources of values.
func Secrets(names ...string) (refs []addonsv1.ValuesReference) {
	for _, name := range names {
		refs = append(refs, addonsv1.ValuesReference{Kind: "Secret", Name: name})
	}
	return refs
}

// Refusing returns a workload cluster that refuses each request, and how many there were.
func Refusing(t testing.TB) (cluster workload.Cluster, requests *int) {
	requests = new(int)
	var mu sync.Mutex
	conn := connection.To(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*requests++
		w.WriteHeader(http.StatusInternalServerError)
	})
	return workload.Cluster{Name: "team/prod", Conn: conn, Namespace: "team"}, requests
}
