// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
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
	selector, _ := metav1.LabelSelectorAsSelector(spec.ClusterSelector) // a wrong one is a problem of its own
	var keys labels.Requirements
	var asked []string
	if spec.ClusterSelector != nil && selector != nil {
		keys, _ = selector.Requirements()
		asked = append(asked, "the labels "+message.Shorten(selector.String(), maxUnmatched))
	}
	if len(spec.ClassNames) > 0 {
		asked = append(asked, "a class of "+message.List(spec.ClassNames, ", ", message.Few))
	}
	kind, isThere, has := strings.Join(kindsOf(spec), " or "), false, sets.New[string]()
	for _, m := range clusters {
		if m.Namespace != namespace || !slices.Contains(kindsOf(spec), m.Kind) {
			continue
		}
		isThere = true
		for i := range keys {
			if value, ok := m.Labels[keys[i].Key()]; ok {
				has.Insert(keys[i].Key() + "=" + value)
			}
		}
		if len(spec.ClassNames) > 0 && m.ClassName != "" {
			has.Insert("class " + m.ClassName)
		}
	}
	text := fmt.Sprintf("No %s of namespace %s has %s", kind, namespace, strings.Join(asked, " and "))
	switch {
	case !isThere:
		return fmt.Sprintf("Namespace %s has no %s. A stack selects those of its own namespace", namespace, kind)
	case len(has) == 0:
		return text + ", and none has another value there"
	}
	return text + ". There are " + message.Shorten(message.List(sets.List(has), ", ", message.Few), maxUnmatched)
}

// SelectionWarnings returns what a spec doesn't select, though the namespace has clusters: a stack without any cluster, or a
// wave without one that isn't optional.
func SelectionWarnings(namespace string, spec *addonsv1.AddonStackSpec, clusters map[string]*member.Member) (all []string) {
	var selected []*member.Member
	for m := range maps.Values(clusters) {
		if selects, err := Selects(namespace, spec, m); err == nil && selects {
			selected = append(selected, m)
		}
	}
	if len(selected) == 0 && len(clusters) > 0 {
		return []string{"spec: " + Unmatched(namespace, spec, clusters)}
	}
	for i, wave := range ptr.Deref(spec.Rollout, addonsv1.Rollout{}).Waves {
		selector, err := metav1.LabelSelectorAsSelector(wave.ClusterSelector)
		takes := func(m *member.Member) bool { return selector.Matches(labels.Set(m.Labels)) }
		if wave.ClusterSelector == nil || wave.Optional || err != nil || len(selected) == 0 || slices.ContainsFunc(selected, takes) {
			continue
		}
		all = append(all, fmt.Sprintf("spec.rollout.waves[%d].clusterSelector: none of the stack's clusters has the labels %s, and the rollout waits at wave %s until one has. "+
			"Correct it, or set optional: true", i, message.Shorten(selector.String(), maxUnmatched), wave.Name))
	}
	return all
}
