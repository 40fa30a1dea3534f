// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// newCondition returns a condition. The code that sets it adds the times.
func newCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// warn writes a condition that says what is wrong, and sends an event if its message is new.
func (r *Reconciler) warn(s *addonsv1.AddonStack, c metav1.Condition, reason, action string) {
	if conditions.GetMessage(s, c.Type) != c.Message {
		r.event(s, corev1.EventTypeWarning, reason, action, c.Message)
	}
	conditions.Set(s, c)
}

// event sends an event, whose text may be too long for one.
func (r *Reconciler) event(s *addonsv1.AddonStack, kind, reason, action, text string) {
	r.Recorder.Eventf(s, nil, kind, reason, action, "%s", message.Shorten(text, maxNote))
}
