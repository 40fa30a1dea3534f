// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestManyStacksAreDeletedAtOnce has 50 stacks of one cluster go in one moment. That is wanted, so there are no Warnings.
func TestManyStacksAreDeletedAtOnce(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, _ := newProd(t, 2)
	var stacks []*addonsv1.AddonStack
	var addons []string
	for i := range 50 {
		name := fmt.Sprintf("stack-%02d", i)
		stacks, addons = append(stacks, tn.makeStack(name, labels("env=prod"), tn.small(name))), append(addons, name)
	}
	tn.awaitCluster("prod", "all are installed", ready(addons...))
	for _, s := range stacks {
		tn.remove(s)
	}
	tn.awaitCluster("prod", "all are removed", ready())
	tn.Expect(tn.warnings()).To(BeEmpty())
}
