// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestAnotherManagementClusterTakesOver once: the first one stops, says so, and takes the
// release back with a new ClusterAddon.
func TestAnotherManagementClusterTakesOver(t *testing.T) {
	e, ns := alone(t)
	of := func(uid, version string) deliver.Desired {
		want := e.want(ns, chart{version: version, manifest: configMap("x", version)})
		want.OwnerUID = types.UID(uid)
		return want
	}
	e.install(of("first", "1"))
	e.install(of("first", "2"))
	e.install(of("second", "3"))
	for range 2 {
		e.restart()
		o := e.settle(of("first", "2"))
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
		e.Expect(o.Reason).To(Equal(deliver.ReasonReleaseTakenOver))
		e.Expect(o.Message).To(And(ContainSubstring(ns+"/demo"), ContainSubstring("fleet/cluster-a")))
		e.Expect(o.Recorded).To(BeFalse())
	}
	e.Expect(e.install(of("second", "4")).Revision).To(BeEquivalentTo(4))
	e.Expect(e.install(of("first again", "2")).Revision).To(BeEquivalentTo(5))
	e.Expect(e.settle(of("second", "4")).Reason).To(Equal(deliver.ReasonReleaseTakenOver))
}
