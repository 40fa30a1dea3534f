// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestClaim has two instances of one scope, which are in two namespaces.
func TestClaim(t *testing.T) {
	long.Test(t)
	t.Parallel()
	first, second := newHome(t, shared), newHomeNamed(t, shared, "claim-second")
	second.bind(first.namespace, "Role", "reads")
	scope := withNamespaces(first.namespace)

	holder := first.start(scope)
	holder.awaitWorking(patience, "nobody else is there")

	rival := second.start(scope)
	second.Eventually(second.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False ScopeTaken"))
	refused := conditions.Get(second.get(), addonsv1.ScopeHeldCondition)
	second.Expect(refused.Message).To(And(ContainSubstring("ProviderInstance claim/chandler"), ContainSubstring("namespace claim"), ContainSubstring("v1.2.3")), "who holds what, and in which version")
	second.Expect(rival.Ready(nil)).To(MatchError(ContainSubstring("ScopeTaken")))
	generation := second.get().Generation
	second.Consistently(func() any { return conditions.Get(second.get(), addonsv1.ScopeHeldCondition) }).WithTimeout(6*time.Second).Should(Equal(refused), "nothing flaps")
	second.Expect(second.get().Generation).To(Equal(generation))
	second.Expect(rival.starts.Load()).To(BeZero())
	second.Eventually(second.events).WithTimeout(patience).Should(ContainElement("ScopeTaken"))

	second.edit(func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeWaiting })
	second.Eventually(func() bool {
		pi := second.get()
		return pi.Spec.Claim == addonsv1.ScopeClaiming && pi.Status.Grant.Holder == pi.Spec.Holder && pi.Status.Grant.State == addonsv1.GrantRefused
	}).WithTimeout(patience).Should(BeTrue(), "it still wants its scope")
	second.Expect(second.get().Status.Grant.Message).To(Equal(refused.Message))
	second.Consistently(second.says(addonsv1.ScopeHeldCondition)).WithTimeout(3 * time.Second).Should(Equal("False ScopeTaken"))

	holder.end()
	rival.awaitWorking(3*time.Second, "the scope is free at once when the holder ends in order")
	second.Eventually(second.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"))

	third := first.start(scope)
	first.Eventually(first.says(addonsv1.ScopeHeldCondition)).WithTimeout(patience).Should(Equal("False ScopeTaken"))
	rival.cut.Store(true)
	third.awaitWorking(patience, "the second one is silent")
	second.Expect(rival.dead).To(Receive(), "it has ended before")
	first.expectNothingForbidden()
	second.expectNothingForbidden()
}
