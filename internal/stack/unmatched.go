// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
)

// maxUnmatched bounds in bytes what a message says of a selector, and of what clusters have instead.
const maxUnmatched = 200

// Unmatched returns why a spec selects none of the clusters of its namespace: what it asks for, and what they have there. It
// names no numbers, as it would change with each cluster.
func Unmatched(namespace string, spec *addonsv1.AddonStackSpec, clusters map[string]*member.Member) string {
	kinds := kindsOf(spec)
	clusters = maps.Clone(clusters)
	maps.DeleteFunc(clusters, func(_ string, m *member.Member) bool {
		return m.Namespace != namespace || !slices.Contains(kinds, m.Kind)
	})
	kind := strings.Join(kinds, " or ")
	if len(clusters) == 0 {
		return fmt.Sprintf("Namespace %s has no %s", namespace, kind)
	}
	var asked []string
	has := map[string]bool{}
	if selector := spec.ClusterSelector; selector != nil {
		asked = append(asked, "the labels "+message.Shorten(metav1.FormatLabelSelector(selector), maxUnmatched))
		addLabels(has, selector, clusters)
	}
	if len(spec.ClassNames) > 0 {
		asked = append(asked, "a class of "+message.List(spec.ClassNames, ", ", message.Few))
		for _, m := range clusters {
			has["class "+cmp.Or(m.ClassName, "none")] = true
		}
	}
	text := fmt.Sprintf("No %s of namespace %s has %s", kind, namespace, strings.Join(asked, " and "))
	if len(has) == 0 {
		return text + ", and none has another value there"
	}
	return text + ". There are " + message.Shorten(message.List(slices.Sorted(maps.Keys(has)), ", ", message.Few), maxUnmatched)
}

// addLabels notes the labels that clusters have of the keys of a selector.
func addLabels(has map[string]bool, selector *metav1.LabelSelector, clusters map[string]*member.Member) {
	keys := slices.Collect(maps.Keys(selector.MatchLabels))
	for _, each := range selector.MatchExpressions {
		keys = append(keys, each.Key)
	}
	for _, m := range clusters {
		for _, key := range keys {
			if value, ok := m.Labels[key]; ok {
				has[key+"="+value] = true
			}
		}
	}
}

// SelectionWarnings returns what a spec doesn't select, though the namespace has clusters: a stack without any cluster, or a
// wave without one that isn't optional.
func SelectionWarnings(namespace string, spec *addonsv1.AddonStackSpec, clusters map[string]*member.Member) (all []string) {
	selected := maps.Clone(clusters)
	maps.DeleteFunc(selected, func(_ string, m *member.Member) bool {
		selects, err := Selects(namespace, spec, m)
		return err != nil || !selects
	})
	switch {
	case len(clusters) == 0:
		return nil
	case len(selected) == 0:
		return []string{"spec: " + Unmatched(namespace, spec, clusters)}
	}
	for i, wave := range ptr.Deref(spec.Rollout, addonsv1.Rollout{}).Waves {
		takes := func(m *member.Member) bool {
			taken, err := Selects(namespace, &addonsv1.AddonStackSpec{ClusterSelector: wave.ClusterSelector, ClusterKinds: []string{m.Kind}}, m)
			return taken || err != nil // which is a problem of its own
		}
		if wave.ClusterSelector != nil && !wave.Optional && !slices.ContainsFunc(slices.Collect(maps.Values(selected)), takes) {
			all = append(all, fmt.Sprintf("spec.rollout.waves[%d].clusterSelector: none of the stack's clusters has %s, and the rollout waits at wave %s until one has. "+
				"Correct it, or set optional: true", i, message.Shorten(metav1.FormatLabelSelector(wave.ClusterSelector), maxUnmatched), wave.Name))
		}
	}
	return all
}
