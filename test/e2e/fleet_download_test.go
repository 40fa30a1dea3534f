// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestFleetSharesDownloads has a hundred clusters that want the same charts at once: each is
// fetched once, and unpacked once.
// It isn't parallel: beside others a source would count as slow.
func TestFleetSharesDownloads(t *testing.T) {
	long.Test(t)
	const clusters = 100
	g := NewWithT(t)
	tn := newTenant(t)
	s := workloadServer(t, 2)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	offered := publish(t, origin, "offered")
	server := faulty.Start(t, authority, offered)
	for i := range clusters {
		tn.makeClusterWithAll(fmt.Sprintf("cluster-%d", i), s, offered, func(string) *faulty.Server { return server })
	}
	begun := time.Now()
	m := tn.startManager("--credentials-dir="+credentials, "--cache-dir="+filepath.Join(t.TempDir(), "cache"))
	for i := range clusters {
		tn.awaitCluster(fmt.Sprintf("cluster-%d", i), "it has all charts", ready(sourceKinds...))
	}
	t.Logf("%d clusters with %d charts each are ready after %s", clusters, len(sourceKinds), time.Since(begun).Round(time.Millisecond))

	asked := map[string][]string{}
	for _, r := range server.Requests() {
		asked[kindAsked(r)] = append(asked[kindAsked(r)], r.String())
	}
	for kind, requests := range asked {
		// A registry: a manifest and a blob; a repository: the index and the archive; a
		// host: the archive; GitHub: the release and the file.
		g.Expect(len(requests)).To(BeNumerically("<=", 2), "%s is asked once for all clusters: %s", kind, strings.Join(requests, ", "))
	}
	g.Expect(asked).To(HaveLen(len(sourceKinds)))
	for _, kind := range sourceKinds {
		bytes, err := m.sum("chandler_source_artifact_bytes_total", `kind="`+kind+`"`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes).To(Equal(float64(len(offered.archives[kind]))), "each archive came once")
	}
	unpacked, err := m.sum("chandler_source_unpackings_total")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unpacked).To(Equal(float64(len(sourceKinds))), "each archive was unpacked once")
}
