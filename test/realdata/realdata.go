// SPDX-License-Identifier: Apache-2.0

// Package realdata finds charts and Cluster Stack releases as they were published. They are
// not part of the repository: tests that need them are skipped where there are none.
package realdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// Env names the folder that has charts/ and cluster-stacks/. By default it is shared/data
// beside the checkout.
const Env = "CHANDLER_TEST_DATA"

// Path is that of a file or folder of the data. The test is skipped if it isn't there.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	path := Lookup(t, parts...)
	if path == "" {
		t.Skipf("no real data: set %s to a folder that has %s", Env, filepath.Join(parts...))
	}
	return path
}

// Lookup returns the path of a file or folder of the data, "" if it isn't there.
func Lookup(t testing.TB, parts ...string) string {
	t.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		dir = filepath.Join(checkout(t), "..", "shared", "data")
	}
	path := filepath.Join(append([]string{dir}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Read returns a file of the data.
func Read(t testing.TB, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(Path(t, parts...))
	must.Succeed(t, err)
	return data
}

// checkout is the folder above the test's that has the module.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	must.Succeed(t, err)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test runs outside of a module")
		}
	}
}

// Measured are the charts that benchmarks of single steps take.
var Measured = []string{"cilium-1.19.6.tgz", "ingress-nginx-4.15.1.tgz", "kube-state-metrics-8.4.0.tgz", "metrics-server-3.13.1.tgz"}
