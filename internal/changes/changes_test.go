// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
)

// TestOtherAddonsAreHeld changes the names in a held removal: a list of strings that has the name of a list of objects.
func TestOtherAddonsAreHeld(t *testing.T) {
	held := func(addons ...string) *addonsv1.ClusterAddonSpec {
		removal := &addonsv1.HeldRemoval{Cause: addonsv1.RemovalAddonsDropped, Confirmation: "3f9a2c1b-x7k2p", Addons: addons}
		return &addonsv1.ClusterAddonSpec{ClusterName: "prod", Stacks: []addonsv1.StackRevision{{Name: "platform", HeldRemoval: removal}}}
	}
	for name, test := range map[string]struct{ before, after []string }{
		"another one":      {[]string{"apps/web"}, []string{"apps/db"}},
		"one more":         {[]string{"apps/web"}, []string{"apps/db", "apps/web"}},
		"one less":         {[]string{"apps/db", "apps/web"}, []string{"apps/web"}},
		"the same":         {[]string{"apps/web"}, []string{"apps/web"}},
		"in another order": {[]string{"apps/db", "apps/web"}, []string{"apps/web", "apps/db"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			patch, err := changes.Between(held(test.before...), held(test.after...))
			g.Expect(err).NotTo(HaveOccurred())
			document, err := json.Marshal(held(test.before...))
			g.Expect(err).NotTo(HaveOccurred())
			changed, err := patch.Apply(document)
			g.Expect(err).NotTo(HaveOccurred())
			is := &addonsv1.ClusterAddonSpec{}
			g.Expect(json.Unmarshal(changed, is)).To(Succeed())
			g.Expect(is).To(Equal(held(test.after...)))
		})
	}
}
