// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// TestNewObjects has objects of which one is there already: nobody's new one is applied over it.
func TestNewObjects(t *testing.T) {
	e, ns := beside(t)
	c := chart{version: "1"}
	for i := range 5 {
		c.manifest += configMap(fmt.Sprintf("c%d", i), "ours")
	}
	for _, theirs := range []string{"ours", "theirs"} {
		e.apply("kubectl", namespaced(ns, configMap("c3", theirs)))
		want := e.want(ns, c)
		o := e.settle(want)
		e.Expect(o.Reason).To(Equal(object.ReasonObjectExists), o.Message)
		e.Expect(o.Message).To(ContainSubstring("c3"))
		there := e.get("v1", "ConfigMap", ns, "c3")
		e.Expect(there.Object["data"]).To(HaveKeyWithValue("key", theirs))
		e.Expect(there.GetManagedFields()).To(HaveLen(1), "nobody else says anything of it")
		e.Expect(there.GetLabels()).To(BeEmpty())
		e.Expect(e.get("v1", "ConfigMap", ns, "c4").Object["data"]).To(HaveKeyWithValue("key", "ours"))
	}
	want := e.want(ns, c)
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "c3").Object["data"]).To(HaveKeyWithValue("key", "ours"))
}

func namespaced(ns, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata:\n", "metadata:\n  namespace: "+ns+"\n")
}
