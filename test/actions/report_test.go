// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// report returns how stacks, their revisions and ClusterAddons are now. It is for people who look for the cause of a failure.
func (f *fleet) report() string {
	var text strings.Builder
	all := &addonsv1.AddonStackList{}
	revisions, cas := &appsv1.ControllerRevisionList{}, &addonsv1.ClusterAddonList{}
	for _, list := range []client.ObjectList{all, revisions, cas} {
		if err := f.hub().List(f.ctx(), list, client.InNamespace(f.namespace)); err != nil {
			fmt.Fprintf(&text, "\n%v", err)
		}
	}
	for _, s := range all.Items {
		fmt.Fprintf(&text, "\n%s since %s, generation %d, %s: %s", s.Name, s.CreationTimestamp.UTC().Format("15:04:05"), s.Generation, inJSON(s.Annotations), inJSON(s.Spec))
		fmt.Fprintf(&text, "\n  latest=%s clusters=%s rollout=%s", s.Status.LatestRevision, inJSON(s.Status.Clusters), inJSON(s.Status.Rollout))
		writeConditions(&text, s.Status.Conditions)
	}
	for _, r := range revisions.Items {
		fmt.Fprintf(&text, "\n%s is number %d of %s: %s", r.Name, r.Revision, r.Labels[addonsv1.StackNameLabel], inJSON(r.Annotations))
	}
	for _, ca := range cas.Items {
		fmt.Fprintf(&text, "\n%s since %s, generation %d, observed %d, %s", ca.Name, ca.CreationTimestamp.UTC().Format("15:04:05"), ca.Generation, ca.Status.ObservedGeneration, inJSON(ca.Annotations))
		for _, s := range ca.Spec.Stacks {
			fmt.Fprintf(&text, "\n  has %s", inJSON(s))
		}
		for _, s := range ca.Status.Stacks {
			fmt.Fprintf(&text, "\n  is at %s", inJSON(s))
		}
		for _, a := range ca.Status.Addons {
			fmt.Fprintf(&text, "\n  %s of %s, recorded %s, is %s %s since %s: %s", a.Name, a.Stack, a.RecordedRevision, a.Phase, a.Reason, a.Since.UTC().Format("15:04:05"), a.Message)
		}
		writeConditions(&text, ca.Status.Conditions)
	}
	return text.String()
}

func writeConditions(text *strings.Builder, of []metav1.Condition) {
	for _, c := range of {
		fmt.Fprintf(text, "\n  %s=%s %s since %s: %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC().Format("15:04:05"), c.Message)
	}
}

func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
