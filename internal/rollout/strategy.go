// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"time"

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
	RollsBack   bool
	Windows     []Window
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
}

// takesRest reports whether the wave has all clusters that no other has.
func (w *Wave) takesRest() bool { return w.Selector == nil && w.Size == nil }

// StrategyOf returns the strategy that spec.rollout asks for, at a path of the spec.
func StrategyOf(r *addonsv1.Rollout, path *field.Path) (Strategy, field.ErrorList) {
	var errs field.ErrorList
	s := Strategy{
		MaxFailed:   *cmp.Or(r.MaxFailed, &addonsv1.DefaultMaxFailed),
		ReadyWithin: ptr.Deref(r.ReadyWithin, metav1.Duration{Duration: addonsv1.DefaultReadyWithin}).Duration,
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
	s.Waves = append(s.Waves, Wave{Name: addonsv1.RestWave, MaxConcurrent: *limit})
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
