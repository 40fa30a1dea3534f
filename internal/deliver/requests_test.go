// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestRequests holds the number of requests of an add-on with many objects that
// are ready at once, when kinds are known already.
func TestRequests(t *testing.T) {
	const n = 40
	e, ns := alone(t)
	many := func(version, value string) chart {
		c := chart{version: version}
		for i := range n {
			c.manifest += configMap(fmt.Sprintf("c%02d", i), value)
		}
		return c
	}
	warm := e.want(ns, chart{version: "1", manifest: configMap("warm", "x")})
	warm.Name = "warm"
	e.install(warm)

	measure := func(what string, requests, writes int, f func()) {
		t.Helper()
		e.meter.reset()
		f()
		r, w := e.meter.total()
		t.Logf("%s: %d requests, of them %d writes", what, r, w)
		e.Expect(r).To(BeNumerically("<=", requests), what)
		e.Expect(w).To(BeNumerically("<=", writes), what)
	}
	want := e.want(ns, many("1", "a"))
	// Records and namespace; a write for each object; the record, pending and deployed.
	measure("install", 2+n+2, n+2, func() { e.install(want) })
	measure("unchanged", 1, 0, func() { e.install(want) })
	// LIST; the old record is read twice and written once; one write for each object; the new record.
	measure("upgrade", 1+3+n+2, n+3, func() { e.install(e.want(ns, many("2", "b"))) })
	// As above, but a look at each of the objects that stay as they are in place of a write.
	one := many("3", "b")
	one.manifest = strings.Replace(one.manifest, `key: "b"`, `key: "c"`, 1)
	measure("upgrade of one object", 1+3+n+2, 1+3, func() { e.install(e.want(ns, one)) })

	measure("repair", 2+2*n, n, func() { _, _ = e.repair(want.Release) })
	hooked := e.want(ns, chart{version: "1", manifest: configMap("hooked", "x"), hooks: []job.Hook{
		{Name: "before", Kind: "ConfigMap", Path: "demo/before", Manifest: configMap("before", "x"), Events: []string{"pre-install"}, DeletePolicies: []string{"before-hook-creation", "hook-succeeded"}},
		{Name: "later", Kind: "ConfigMap", Path: "demo/later", Manifest: configMap("later", "x"), Events: []string{"pre-install"}, Weight: 1, DeletePolicies: []string{"hook-succeeded"}},
	}})
	hooked.Name = "hooked"
	// As above; a write and a deletion for each hook's object; the record when they are done.
	measure("hooks", 2+1+2+2*2+1, 1+2+2*2+1, func() { e.install(hooked) })
	e.Expect(e.get("v1", "ConfigMap", ns, "before")).To(BeNil())
	// A look, a deletion and a last look for each object, and two watches.
	measure("remove", 3*n+12, n+4, func() { e.remove(want.Release) })
}
