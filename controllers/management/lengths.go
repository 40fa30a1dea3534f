// SPDX-License-Identifier: Apache-2.0

package management

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// cutTexts cuts the texts of a status to what its CRD allows. Most come from workload clusters, and the API server refuses the whole
// status for one that is too long.
func cutTexts(s *addonsv1.ClusterAddonStatus) {
	cut(&s.ObservedUID, 64)
	cut(&s.ClusterUID, 64)
	cut(&s.LastReconcileNow, 256)
	cut(&s.ReadyAddons, 16)
	cut(&s.StackNames, 256)
	for i := range s.Conditions {
		cut(&s.Conditions[i].Message, 32768)
	}
	for i := range s.Stacks {
		stack := &s.Stacks[i]
		cut(&stack.Name, 253)
		cut(&stack.Revision, 253)
		cut(&stack.Previous, 253)
	}
	for i := range s.Addons {
		cutTextsOfAddon(&s.Addons[i])
	}
	for i := range s.History {
		change := &s.History[i]
		cut(&change.Addon, 53)
		cut(&change.Namespace, 63)
		cut(&change.Stack, 253)
		cut(&change.By, 256)
		cut(&change.From, 256)
		cut(&change.To, 256)
	}
	if s.KubernetesVersions != nil {
		for i := range s.KubernetesVersions.Ranges {
			versions := &s.KubernetesVersions.Ranges[i]
			cut(&versions.Stack, 253)
			cut(&versions.Addon, 53)
			cut(&versions.Field, 64)
			cut(&versions.Versions, 8192)
		}
	}
	if u := s.Upgrade; u != nil {
		cut(&u.From, 256)
		cut(&u.Step, 256)
		cut(&u.Target, 256)
		for i := range u.Gates {
			cut(&u.Gates[i].Version, 256)
			cut(&u.Gates[i].Reason, 64)
			cut(&u.Gates[i].Message, 1024)
		}
	}
	if s.Deletion != nil {
		cut(&s.Deletion.Message, 1024)
	}
}

func cutTextsOfAddon(a *addonsv1.AddonStatus) {
	cut(&a.Name, 53)
	cut(&a.Namespace, 63)
	cut(&a.Stack, 253)
	cut(&a.Reason, 64)
	cut(&a.Message, 1024)
	cut(&a.Version, 256)
	cut(&a.RecordedRevision, 253)
	cut(&a.RecordDigest, 128)
	cut(&a.ServiceAccountName, 253)
	if a.Drift != nil {
		cut(&a.Drift.Message, 1024)
		cut(&a.Drift.Unwatched, 1024)
		for i := range a.Drift.LastManagers {
			cut(&a.Drift.LastManagers[i], 128)
		}
	}
}

func cut[T ~string](text *T, limit int) {
	if len(*text) > limit {
		*text = T(message.Shorten(string(*text), limit))
	}
}
