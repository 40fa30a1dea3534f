// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestRemovalOfWhatCannotBeWatched looks whether objects are gone that no watch tells of.
func TestRemovalOfWhatCannotBeWatched(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	e.install(want)
	e.meter.refuseWatch("configmaps")
	e.removed(want.Release)
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
}
