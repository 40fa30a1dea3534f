// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// History writes the revisions of a stack, with what differs from the one before.
func (p *Printer) History(h *summary.History) {
	p.printf("AddonStack %s/%s\n", h.Namespace, h.Stack)
	for _, r := range h.Revisions {
		state := fmt.Sprintf("%s, %d ready", number(r.Clusters, "cluster"), r.Ready)
		switch {
		case r.Rejected != "":
			state += "; rejected: " + clean(message.Shorten(r.Rejected, width))
		case r.WasReady:
			state += "; was Ready on all clusters"
		}
		p.printf("\n%d  %s  %s ago  %s\n", r.Number, r.Name, p.age(&r.Created), state)
		p.Changes(r.Changes)
	}
}

// Changes writes what differs, one field a line.
func (p *Printer) Changes(changes []string) {
	for _, change := range changes {
		p.printf("    %s\n", clean(message.Shorten(change, width-4)))
	}
}

// Rollout writes how far a rollout is.
func (p *Printer) Rollout(s *addonsv1.AddonStack, rolledOut *metav1.Condition) {
	r := s.Status.Rollout
	p.printf("AddonStack %s/%s  revision %s  %s", s.Namespace, s.Name, r.Revision, strings.ToUpper(string(r.Phase)))
	if rolledOut != nil {
		p.printf(" for %s", p.age(&rolledOut.LastTransitionTime))
	}
	p.printf("\n\n")
	var rows [][]any
	for i, wave := range r.Waves {
		state := "waits"
		switch at := int32(i); {
		case at < r.WavesDone:
			state = "done"
		case at == r.WavesDone:
			state = string(r.Phase)
		}
		rows = append(rows, []any{wave.Name, wave.Total, wave.Updated, wave.Done, wave.Failed, wave.Away, state})
	}
	p.table("WAVE CLUSTERS UPDATED DONE FAILED AWAY STATE", rows)
	if rolledOut != nil {
		p.paragraph("", 0, rolledOut.Message)
	}
}

// Event writes one event in a line or more.
func (p *Printer) Event(e *eventsv1.Event) {
	when := observed.LastSeen(e)
	reason := e.Reason
	if e.Type != "Normal" {
		reason = p.color(red, reason)
	}
	p.printf("%s  %s/%s  %s\n", when.UTC().Format("2006-01-02 15:04:05Z"), strings.ToLower(e.Regarding.Kind), e.Regarding.Name, reason)
	p.paragraph("", 6, e.Note)
}
