// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isGiven reports whether another stack may have a release of the component still.
func (is *state) isGiven() bool { return is.givers != [stacks]bool{} }

// isFreeToGive reports whether such a stack may remove its release without being asked.
func (m *model) isFreeToGive(is state) bool {
	for s, gives := range is.givers {
		if of := &m.stacks[s]; gives && of.isFree && (of.exists || !of.sealed) {
			return true
		}
	}
	return false
}

// mayHave reports whether a cluster may have a release of the component by the stack.
func (m *model) mayHave(s, k int) bool {
	for c := range m.clusters {
		if is := m.shares[share{c, k}]; is.givers[s] || is.standing != kept && is.stack == s {
			return true
		}
	}
	return false
}

// endGiving has stacks have nothing any more of components that others want, where no release by another name is left. It is called
// at rest.
func (f *fleet) endGiving() {
	f.t.Helper()
	ends, others := map[share]bool{}, map[int]map[int]bool{}
	for x, is := range f.now().shares {
		if is.standing != wanted || !is.isGiven() && !is.renamed || f.links[x.cluster] != linked || f.now().waits(x, is.stack) {
			continue
		}
		if others[x.cluster] == nil {
			others[x.cluster] = f.otherReleases(x.cluster)
		}
		if !others[x.cluster][x.component] {
			ends[x] = true
		}
	}
	if len(ends) == 0 {
		return
	}
	f.change(func(m *model) {
		for x := range ends {
			is := m.shares[x]
			is.givers, is.renamed, is.excused = [stacks]bool{}, false, false
			m.shares[x] = is
		}
	}, func() {})
}

// otherReleases returns the components of which a cluster has a release by another name than the present one.
func (f *fleet) otherReleases(c int) map[int]bool {
	f.t.Helper()
	records := &corev1.SecretList{}
	if err := f.workloads[c].List(f.ctx(), records, client.InNamespace(f.namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		f.t.Fatal(err)
	}
	found := map[int]bool{}
	for _, record := range records.Items {
		for k := range components {
			name := record.Labels["name"]
			found[k] = found[k] || strings.HasPrefix(name, componentName(k)+"-") && name != f.now().release(k)
		}
	}
	return found
}
