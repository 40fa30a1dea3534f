// SPDX-License-Identifier: Apache-2.0

package instances

import "slices"

// serves says whether an instance manages objects of the namespace that have the label.
func (n *namespaceModel) serves(filter string) bool { return slices.Contains(n.served, filter) }

func (n *namespaceModel) stackFilters() []string { return slices.Concat(n.filters, n.common) }

// sees says whether the instance of a Cluster manages a stack, too.
func (n *namespaceModel) sees(cluster, stack string) bool {
	return len(n.served) == len(n.filters) || cluster == stack || slices.Contains(n.common, stack)
}

// expected is what add-ons the Cluster is to have, with their texts, and which ones
// it may have: of stacks that another instance manages now. Those were
// relabelled, which takes nothing away.
func (n *namespaceModel) expected(i int) (wanted map[string]string, allowed []string) {
	c, wanted := n.clusters[i], map[string]string{}
	for s := range n.stacks {
		stack := &n.stacks[s]
		if !stack.exists || halfOf(s) != halfOf(i) {
			continue
		}
		if !n.sees(c.filter, stack.filter) {
			allowed = append(allowed, stackName(s)+"-a", stackName(s)+"-b")
			continue
		}
		if stack.tier != "" && stack.tier != c.tier {
			continue
		}
		secret := "none"
		if stack.secret >= 0 {
			secret = n.secrets[stack.secret]
		}
		wanted[stackName(s)+"-a"] = stack.text + "/" + secret
		if stack.second {
			wanted[stackName(s)+"-b"] = stack.text + "/" + secret
		}
	}
	return wanted, allowed
}

// size is how many Clusters an instance manages, and how many add-ons these are to have.
func (m *model) size() (clusters, addons int) {
	for _, n := range m.namespaces {
		for i := range n.clusters {
			if n.clusters[i].exists && n.serves(n.clusters[i].filter) {
				wanted, _ := n.expected(i)
				clusters, addons = clusters+1, addons+len(wanted)
			}
		}
	}
	return clusters, addons
}
