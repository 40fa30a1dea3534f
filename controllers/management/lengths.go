// SPDX-License-Identifier: Apache-2.0

package management

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// cutTexts cuts the texts of a status to what its CRD allows. Most come from workload clusters, and the API server refuses the whole
// status for one that is too long.
func cutTexts(s *addonsv1.ClusterAddonStatus) {
	cut(map[*string]int{
		(*string)(&s.ObservedUID): 64, (*string)(&s.ClusterUID): 64, &s.LastReconcileNow: 256, &s.ReadyAddons: 16, &s.StackNames: 256,
	})
	for i := range s.Conditions {
		cut(map[*string]int{&s.Conditions[i].Message: 32768})
	}
	for i := range s.Stacks {
		is := &s.Stacks[i]
		cut(map[*string]int{&is.Name: 253, &is.Revision: 253, &is.Previous: 253})
	}
	for i := range s.Addons {
		cutTextsOfAddon(&s.Addons[i])
	}
	for i := range s.History {
		is := &s.History[i]
		cut(map[*string]int{&is.Addon: 53, &is.Namespace: 63, &is.Stack: 253, &is.By: 256, &is.From: 256, &is.To: 256})
	}
	if s.KubernetesVersions != nil {
		for i := range s.KubernetesVersions.Ranges {
			is := &s.KubernetesVersions.Ranges[i]
			cut(map[*string]int{&is.Stack: 253, &is.Addon: 53, &is.Field: 64, &is.Versions: 8192})
		}
	}
	if u := s.Upgrade; u != nil {
		cut(map[*string]int{&u.From: 256, &u.Step: 256, &u.Target: 256})
		for i := range u.Gates {
			is := &u.Gates[i]
			cut(map[*string]int{&is.Version: 256, &is.Reason: 64, &is.Message: 1024})
		}
	}
	if s.Deletion != nil {
		cut(map[*string]int{&s.Deletion.Message: 1024})
	}
}

func cutTextsOfAddon(a *addonsv1.AddonStatus) {
	cut(map[*string]int{
		&a.Name: 53, &a.Namespace: 63, &a.Stack: 253, &a.Reason: 64, &a.Message: 1024, &a.Version: 256, &a.RecordedRevision: 253,
		&a.RecordDigest: 128, &a.ServiceAccountName: 253,
	})
	if a.Drift != nil {
		cut(map[*string]int{&a.Drift.Message: 1024, &a.Drift.Unwatched: 1024})
		for i := range a.Drift.LastManagers {
			cut(map[*string]int{&a.Drift.LastManagers[i]: 128})
		}
	}
}

// cut shortens texts that are too long. Others keep their lines.
func cut(limits map[*string]int) {
	for text, limit := range limits {
		if len(*text) > limit {
			*text = message.Shorten(*text, limit)
		}
	}
}
