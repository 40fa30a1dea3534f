// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// History has the revisions and the changes of a stack, the newest first.
type History struct {
	Namespace string     `json:"namespace"`
	Stack     string     `json:"stack"`
	Revisions []Revision `json:"revisions"`
	Changes
}

// Revision is a spec that a stack had.
type Revision struct {
	Number  int64       `json:"number"`
	Name    string      `json:"name"`
	Created metav1.Time `json:"created"`
	// Clusters are to have it now; on Ready of them all of its add-ons are.
	Clusters int `json:"clusters"`
	Ready    int `json:"ready"`
	// WasReady says that all clusters were Ready at it.
	WasReady bool   `json:"wasReady,omitempty"`
	Rejected string `json:"rejected,omitempty"`
	// Changes are what differs from the revision before.
	Changes []string `json:"changes,omitempty"`
}

// HistoryOf returns the revisions, which come the newest first, with the clusters that have them.
func HistoryOf(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, clusters []addonsv1.ClusterAddon) (h *History, err error) {
	h = &History{Namespace: s.Namespace, Stack: s.Name, Revisions: []Revision{}, Changes: *ChangesOf(&observed.Fleet{Stacks: []addonsv1.AddonStack{*s}}, time.Time{})}
	for i := range revisions {
		r := &revisions[i]
		is := Revision{Number: r.Revision, Name: r.Name, Created: r.CreationTimestamp, WasReady: !rollout.AttemptOf(r).Completed.IsZero()}
		if why, rejected := r.Annotations[addonsv1.RolloutRejectedAnnotation]; rejected {
			is.Rejected = cmp.Or(why, "without a reason")
		}
		for k := range clusters {
			ca := &clusters[k]
			if ca.Namespace != s.Namespace || stack.AssignedRevision(ca.Spec.Stacks, s.Name) != r.Name {
				continue
			}
			is.Clusters++
			if at := stack.StatusOf(&ca.Status, s.Name); at.Revision == r.Name && at.State == addonsv1.StackReady {
				is.Ready++
			}
		}
		if i+1 < len(revisions) {
			if is.Changes, err = stack.Differences(&revisions[i+1], r); err != nil {
				return nil, err
			}
		}
		h.Revisions = append(h.Revisions, is)
	}
	return h, nil
}
