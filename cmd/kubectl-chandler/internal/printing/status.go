// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Status writes how all stacks and clusters are.
func (p *Printer) Status(s *summary.Status) {
	p.instances(s)
	if len(s.Stacks) == 0 {
		p.printf("No AddonStack here. -A looks in all namespaces\n")
	}
	p.stacks(s.Stacks)
	p.causes("FAILED", red, s.Failed)
	p.causes("WAITING", yellow, s.Waiting)
	p.causes("IN PROGRESS", yellow, s.Progressing)
	p.held(s.Held)
	drift := "nothing"
	if s.Drift.Objects > 0 {
		drift = fmt.Sprintf("%s on %s differ from what was installed", number(s.Drift.Objects, "object"), number(s.Drift.Clusters, "cluster"))
	}
	p.printf("\nDRIFT: %s\n", drift)
	for _, cause := range slices.Concat(s.Failed, s.Waiting) {
		if len(cause.Clusters) > 0 {
			p.printf("Next: kubectl chandler why %s -n %s\n", cause.Clusters[0], cause.Namespace)
			return
		}
	}
}

// Versions writes the version of this command, and of all instances.
func (p *Printer) Versions(v *summary.Versions) {
	p.printf("client: %s\n", v.Client)
	for _, i := range v.Instances {
		p.printf("%s/%s: %s\n", i.Namespace, i.Name, i.Spec.Version)
	}
}

func (p *Printer) instances(s *summary.Status) {
	if s.InstancesHidden {
		p.printf("You may not list ProviderInstances, so none are shown\n\n")
		return
	}
	var rows [][]any
	for _, i := range s.Instances {
		scope, counts := i.Status.Scope, ptr.Deref(i.Status.Clusters, addonsv1.InstanceClusters{})
		if i.Spec.WatchFilter != "" {
			scope += " (" + i.Spec.WatchFilter + ")"
		}
		rows = append(rows, []any{i.Namespace + "/" + i.Name, i.Spec.Version, scope, p.age(&metav1.Time{Time: i.Status.HeartbeatTime.Time}), counts.Total, counts.Ready})
	}
	p.table("INSTANCE VERSION SCOPE HEARTBEAT CLUSTERS READY", rows)
	p.printf("\n")
}

func (p *Printer) stacks(stacks []summary.Stack) {
	header := "STACK CLUSTERS READY FAILED WAITING UPDATING SINCE VERSIONS"
	if p.Wide {
		header = strings.Replace(header, "SINCE", "SINCE REVISION", 1)
	}
	var rows [][]any
	for _, s := range stacks {
		c := s.Clusters
		row := []any{s.Namespace + "/" + s.Name, c.Total, c.Ready, c.Failed, c.Waiting, s.Updating, p.age(s.Since)}
		if p.Wide {
			row = append(row, s.Revision)
		}
		var versions []string
		for i := range s.Addons {
			versions = append(versions, p.versions(&s.Addons[i]))
		}
		text := strings.Join(versions, ", ")
		if s.Rollout != nil && s.Rollout.Phase != addonsv1.RolloutCompleted {
			text += fmt.Sprintf(" (rollout: %s, %d of %d)", s.Rollout.Phase, ptr.Deref(c.Updated, 0), c.Total)
		}
		rows = append(rows, append(row, text))
	}
	p.table(header, rows)
}

// versions returns an add-on with its versions, those of most clusters first.
func (p *Printer) versions(a *summary.Addon) string {
	most := a.MostFirst()
	if len(most) == 0 {
		return a.Name + " -"
	}
	text := a.Name + " " + most[0]
	for i, other := range most[1:] {
		if i == few && !p.Wide {
			return text + " (and others)"
		}
		text += fmt.Sprintf(" (%s on %d)", other, a.Versions[other])
	}
	if a.Available != "" {
		text += " (" + a.Available + " is there, not taken)"
	}
	return clean(text)
}

// causes writes a part of the status; nothing without causes.
func (p *Printer) causes(title, code string, causes []summary.Cause) {
	if len(causes) == 0 {
		return
	}
	clusters := map[string]bool{}
	for _, cause := range causes {
		for _, name := range cause.Clusters {
			clusters[cause.Namespace+"/"+name] = true
		}
	}
	p.printf("\n%s: %s, %s\n", p.color(code, title), number(len(clusters), "cluster"), number(len(causes), "cause"))
	for i := range causes {
		p.cause(&causes[i])
	}
}

// cause writes one cause: whose it is, since when, and its message.
func (p *Printer) cause(c *summary.Cause) {
	whose := c.Namespace
	switch {
	case c.Addon != "":
		whose = c.Stack + "/" + c.Addon
	case c.Kind != "":
		whose = c.Kind + " " + c.Name
	}
	text := fmt.Sprintf("%s  %s", whose, c.Reason)
	if c.Phase == addonsv1.AddonDegraded {
		text += " (Degraded)"
	}
	if len(c.Clusters) > 0 {
		text += fmt.Sprintf("  %s: %s", number(len(c.Clusters), "cluster"), p.names(c.Clusters))
	}
	if c.Since != nil {
		text += "  " + p.age(c.Since)
	}
	p.printf("  %s\n", text)
	p.paragraph("", 6, c.Message)
}

// WouldGo writes what confirming held removals would take away.
func (p *Printer) WouldGo(all []summary.Held) {
	for _, h := range all {
		p.printf("%s would go from %s (%s): %s\n", strings.Join(h.Addons, ", "), number(len(h.Clusters), "cluster"), h.Cause, p.names(h.Clusters))
	}
}

// held writes the removals that wait for confirmation.
func (p *Printer) held(all []summary.Held) {
	for _, h := range all {
		p.printf("\n%s: %s of stack %s on %s (%s): %s\n", p.color(yellow, "HELD"), strings.Join(h.Addons, ", "), h.Stack,
			number(len(h.Clusters), "cluster"), h.Cause, p.names(h.Clusters))
		p.printf("  To remove them: kubectl chandler confirm %s -n %s. To keep them: undo the change\n", h.Stack, h.Namespace)
	}
}
