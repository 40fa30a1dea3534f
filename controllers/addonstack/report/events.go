// SPDX-License-Identifier: Apache-2.0

package report

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Events sends events of AddonStacks.
type Events struct{ Recorder events.EventRecorder }

// Send sends an event, whose text may be too long for one.
func (e Events) Send(s *addonsv1.AddonStack, kind, reason, action, text string) {
	e.Recorder.Eventf(s, nil, kind, reason, action, "%s", message.Shorten(text, MaxNote))
}

// Warn writes a condition that says what is wrong, and sends an event if its message is new.
func (e Events) Warn(s *addonsv1.AddonStack, c metav1.Condition, reason, action string) {
	if conditions.GetMessage(s, c.Type) != c.Message {
		e.Send(s, corev1.EventTypeWarning, reason, action, c.Message)
	}
	conditions.Set(s, c)
}
