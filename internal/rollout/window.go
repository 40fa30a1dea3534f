// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"time"
	_ "time/tzdata" // images may have none

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Window is a time that comes again and again.
type Window struct {
	start    cron.Schedule
	duration time.Duration
}

var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// windowOf returns the window that is written at a path of the spec. A window that never opens is an error.
func windowOf(w *addonsv1.RolloutWindow, path *field.Path) (Window, *field.Error) {
	zone, err := time.LoadLocation(cmp.Or(w.TimeZone, "UTC"))
	if err != nil || w.TimeZone == "Local" {
		return Window{}, field.Invalid(path.Child("timeZone"), w.TimeZone, "it isn't a name of the IANA database of time zones")
	}
	schedule, err := fiveFields.Parse(w.Start)
	if err != nil {
		return Window{}, field.Invalid(path.Child("start"), w.Start, err.Error())
	}
	if spec, ok := schedule.(*cron.SpecSchedule); ok {
		spec.Location = zone
	}
	if schedule.Next(time.Unix(0, 0)).IsZero() {
		return Window{}, field.Invalid(path.Child("start"), w.Start, "there is no such day")
	}
	return Window{start: schedule, duration: w.Duration.Duration}, nil
}

// Closed returns whether no window is open, and when that changes. Without windows, it never does: the time is zero.
func Closed(windows []Window, now time.Time) (closed bool, until time.Time) {
	closed = len(windows) > 0
	for _, w := range windows {
		opened := w.start.Next(now.Add(-w.duration)) // the first time that may still be open
		if opened.After(now) {
			continue
		}
		if end := opened.Add(w.duration); closed || end.After(until) {
			closed, until = false, end
		}
	}
	if !closed {
		return false, until
	}
	for _, w := range windows {
		if opens := w.start.Next(now); until.IsZero() || !opens.IsZero() && opens.Before(until) {
			until = opens
		}
	}
	return true, until
}
