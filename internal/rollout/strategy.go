// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"time"
	_ "time/tzdata" // images may have none

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Strategy is spec.rollout with its defaults. Its last wave has the rest of the clusters.
type Strategy struct {
	Waves       []Wave
	MaxFailed   intstr.IntOrString
	ReadyWithin time.Duration
	// MinReady is how long a cluster has to be ready until it is done.
	MinReady  time.Duration
	RollsBack bool
	Windows   []Window
}

// Wave is a step of the rollout.
type Wave struct {
	Name string
	// Selector or Size is set, but for the last wave.
	Selector      labels.Selector
	Size          *intstr.IntOrString
	MaxConcurrent intstr.IntOrString
	Soak          time.Duration
	NeedsApproval bool
	// Optional says that the wave is over if no cluster is in it.
	Optional bool
}

// takesRest reports whether the wave has all clusters that no other has.
func (w *Wave) takesRest() bool { return w.Selector == nil && w.Size == nil }

// StrategyOf returns the strategy that spec.rollout asks for, at a path of the spec. Without waves, the first one has one
// cluster.
func StrategyOf(r *addonsv1.Rollout, path *field.Path) (Strategy, field.ErrorList) {
	var errs field.ErrorList
	s := Strategy{
		MaxFailed:   *cmp.Or(r.MaxFailed, &addonsv1.DefaultMaxFailed),
		ReadyWithin: ptr.Deref(r.ReadyWithin, metav1.Duration{Duration: addonsv1.DefaultReadyWithin}).Duration,
		MinReady:    ptr.Deref(r.MinReady, metav1.Duration{Duration: addonsv1.DefaultMinReady}).Duration,
		RollsBack:   r.OnFailure == addonsv1.RolloutRollBack,
	}
	limit, soak := cmp.Or(r.MaxConcurrent, &addonsv1.DefaultMaxConcurrent), ptr.Deref(r.Soak, metav1.Duration{})
	for i := range r.Waves {
		each := &r.Waves[i]
		wave := Wave{
			Name:          each.Name,
			Size:          each.Size,
			MaxConcurrent: *cmp.Or(each.MaxConcurrent, limit),
			Soak:          ptr.Deref(each.Soak, soak).Duration,
			NeedsApproval: each.Approval == addonsv1.RolloutApprovalRequired,
			Optional:      each.Optional,
		}
		if each.ClusterSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(each.ClusterSelector)
			if err != nil {
				errs = append(errs, field.Invalid(path.Child("waves").Index(i).Child("clusterSelector"), field.OmitValueType{}, err.Error()))
			}
			wave.Selector = selector
		}
		if wave.takesRest() && each.ClusterSelector == nil {
			errs = append(errs, field.Required(path.Child("waves").Index(i), "set either clusterSelector or size"))
		}
		s.Waves = append(s.Waves, wave)
	}
	if len(r.Waves) == 0 {
		s.Waves = []Wave{{Name: addonsv1.FirstWave, Size: new(intstr.FromInt32(1)), MaxConcurrent: *limit, Soak: soak.Duration}}
	}
	s.Waves = append(s.Waves, Wave{Name: addonsv1.RestWave, MaxConcurrent: *limit, Soak: soak.Duration})
	for i := range r.Windows {
		window, err := windowOf(&r.Windows[i], path.Child("windows").Index(i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.Windows = append(s.Windows, window)
	}
	return s, errs
}

// WavesOf returns the waves of spec.rollout as an attempt keeps them: each one with its soak.
func WavesOf(r *addonsv1.Rollout) []addonsv1.RolloutWave {
	waves := r.DeepCopy().Waves
	for i := range waves {
		waves[i].Soak = cmp.Or(waves[i].Soak, r.Soak)
	}
	return waves
}

// AtOnce is the strategy of a stack without spec.rollout.
func AtOnce() Strategy {
	s, _ := StrategyOf(&addonsv1.Rollout{}, nil) // it has no errors
	return s
}

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
