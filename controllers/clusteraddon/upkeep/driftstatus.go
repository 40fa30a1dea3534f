// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/message"
)

// DriftStatus returns the drift in the status. isFought reports whether somebody insists on a change of an object. It stays the same while the same things differ.
func DriftStatus(was *addonsv1.AddonDrift, found []repair.Difference, isFought func(deliver.ObjectKey) bool, manager string, now time.Time) *addonsv1.AddonDrift {
	is := cmp.Or(was.DeepCopy(), &addonsv1.AddonDrift{})
	var texts, managers []string
	repaired := int64(0)
	is.Objects = 0
	for _, d := range found {
		switch {
		case d.Repaired:
			repaired++
		case d.Differs():
			is.Objects++
		default:
			continue
		}
		texts = append(texts, describeDifference(d, isFought(d.Object), manager))
		managers = append(managers, d.Managers...)
	}
	if len(texts) == 0 {
		if was == nil {
			return nil
		}
		return is
	}
	text := result.Shorten(found[0].Hide(message.List(texts, "; ", message.Few))) // all are of one add-on
	if repaired == 0 && text == is.Message {
		return is
	}
	slices.Sort(managers)
	managers = slices.Compact(managers)
	is.Repaired += repaired
	is.Message, is.LastTime, is.LastManagers = text, result.TimeOf(now), managers[:min(len(managers), 8)]
	return is
}

// describeDifference says what was changed of an object, by whom, and what became of that.
func describeDifference(d repair.Difference, fought bool, manager string) string {
	if d.Refused != "" { // which begins with the object
		return d.Refused
	}
	what := "was deleted"
	if !d.Gone {
		var fields []string
		for _, c := range d.Changes {
			fields = append(fields, c.Path.String())
		}
		what = "was changed"
		if len(fields) > 0 {
			what = fmt.Sprintf("has another %s", message.List(fields, ", ", message.Few))
		}
		if len(d.Managers) > 0 {
			what += ", by " + strings.Join(d.Managers, ", ")
		}
	}
	text := fmt.Sprintf("%s %s", d.Object, what)
	switch {
	case d.Repaired:
		text += "; repaired"
	case fought:
		text += fmt.Sprintf(". This happens again whenever %s sets it right, which is done less often now; stop one of the two, or add a rule to drift.ignore", manager)
	}
	return text
}

// unwatchedText begins the message about kinds that can't be watched.
const unwatchedText = "Looked at every ten minutes, as they can't be watched: "

// WithUnwatched returns the status with the kinds that can't be watched, if there are any.
func WithUnwatched(was *addonsv1.AddonDrift, kinds map[schema.GroupKind]error) *addonsv1.AddonDrift {
	if len(kinds) == 0 && was == nil {
		return nil
	}
	is := cmp.Or(was.DeepCopy(), &addonsv1.AddonDrift{})
	is.Unwatched = ""
	if len(kinds) > 0 {
		var texts []string
		for kind, err := range kinds {
			texts = append(texts, fmt.Sprintf("%s (%v)", kind, err))
		}
		slices.Sort(texts)
		is.Unwatched = result.Shorten(unwatchedText + message.List(texts, "; ", message.Few))
	}
	return is
}

// DriftEvent tells of what was found, nil if it was told before.
func DriftEvent(status addonsv1.AddonStatus, was *addonsv1.AddonDrift, found []repair.Difference) *result.Event {
	is := status.Drift
	if is == nil || was != nil && was.Message == is.Message && was.Repaired == is.Repaired {
		return nil
	}
	e := &result.Event{Kind: corev1.EventTypeNormal, Reason: "DriftRepaired", Action: "Repair", Addon: &status}
	if slices.ContainsFunc(found, repair.Difference.Differs) {
		e.Kind, e.Reason = corev1.EventTypeWarning, "DriftFound"
	}
	e.Note = fmt.Sprintf("Add-on %s: %s", status.Name, is.Message)
	return e
}
