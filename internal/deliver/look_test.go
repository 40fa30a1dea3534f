// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestManyLooks has objects of which one is there already, and which are looked at by one list; or, where that has too many
// others, one by one.
func TestManyLooks(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"a list": 0, "too many others": 260} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			ns := e.namespace()
			c := chart{version: "1"}
			for i := range 5 {
				c.manifest += configMap(fmt.Sprintf("c%d", i), "ours")
			}
			for i := range others {
				e.apply("somebody", namespaced(ns, configMap(fmt.Sprintf("other%d", i), "x")))
			}
			e.apply("kubectl", namespaced(ns, configMap("c3", "theirs")))
			want := e.want(ns, c)
			o := e.settle(want)
			e.Expect(o.Reason).To(Equal(deliver.ReasonObjectExists), o.Message)
			e.Expect(o.Message).To(ContainSubstring("c3"))
			e.Expect(e.get("v1", "ConfigMap", ns, "c3").Object["data"]).To(HaveKeyWithValue("key", "theirs"))
			e.Expect(e.get("v1", "ConfigMap", ns, "c4").Object["data"]).To(HaveKeyWithValue("key", "ours"))

			want.Adoption = addonsv1.AdoptionPolicyAdopt
			e.install(want)
			e.Expect(e.get("v1", "ConfigMap", ns, "c3").Object["data"]).To(HaveKeyWithValue("key", "ours"))
		})
	}
}

func namespaced(ns, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata:\n", "metadata:\n  namespace: "+ns+"\n")
}
