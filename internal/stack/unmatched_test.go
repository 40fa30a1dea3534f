// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// fleetOf returns clusters of namespace team, with the label env, and a class.
func fleetOf(envs ...string) map[string]*member.Member {
	all := map[string]*member.Member{}
	for i, env := range envs {
		name := fmt.Sprint("c", i)
		all[name] = &member.Member{
			ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindCluster, Name: name}, Namespace: "team", ClassName: "small", Labels: map[string]string{"env": env},
		}
	}
	return all
}

func selecting(env string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
}

// A stack that selects no cluster says what it asks for, and what there is instead.
func TestUnmatched(t *testing.T) {
	for name, tc := range map[string]struct {
		spec     addonsv1.AddonStackSpec
		clusters map[string]*member.Member
		has, not []string
	}{
		"a value is misspelled":   {addonsv1.AddonStackSpec{ClusterSelector: selecting("prdo")}, fleetOf("prod", "prod"), []string{"Cluster of namespace team", "env=prdo", "env=prod"}, []string{"class"}},
		"a key is":                {addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"evn": "prod"}}}, fleetOf("prod"), []string{"evn=prod"}, []string{"env=prod"}},
		"an expression":           {addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "In", Values: []string{"x", "y"}}}}}, fleetOf("prod"), []string{"env in (x,y)", "env=prod"}, nil},
		"a class":                 {addonsv1.AddonStackSpec{ClassNames: []string{"large"}}, fleetOf("prod"), []string{"large", "class small"}, []string{"labels", "env="}},
		"the namespace has none":  {addonsv1.AddonStackSpec{ClusterSelector: selecting("prod")}, nil, []string{"team", "no Cluster"}, nil},
		"it has none of the kind": {addonsv1.AddonStackSpec{ClusterSelector: selecting("prod"), ClusterKinds: []string{"Secret"}}, fleetOf("prod"), []string{"no Secret"}, []string{"env="}},
	} {
		got := stack.Unmatched("team", &tc.spec, tc.clusters)
		for _, part := range tc.has {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q has no %q", name, got, part)
			}
		}
		for _, part := range tc.not {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q has %q", name, got, part)
			}
		}
	}
	var envs []string
	for i := range 1000 {
		envs = append(envs, fmt.Sprint(strings.Repeat("x", 50), i))
	}
	spec := &addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "In", Values: []string{strings.Repeat("y", 1000)}}}}}
	if got := stack.Unmatched("team", spec, fleetOf(envs...)); len(got) > 600 {
		t.Errorf("%d bytes", len(got))
	}
	if few, many := stack.Unmatched("team", spec, fleetOf("prod")), stack.Unmatched("team", spec, fleetOf("prod", "prod", "prod")); few != many {
		t.Errorf("it changes with each cluster: %q, %q", few, many)
	}
}

func TestSelectionWarnings(t *testing.T) {
	wave := func(env string, optional bool) addonsv1.RolloutWave {
		return addonsv1.RolloutWave{Name: "canary", ClusterSelector: selecting(env), Optional: optional}
	}
	size := intstr.FromInt32(1)
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		waves    []addonsv1.RolloutWave
		clusters map[string]*member.Member
		want     string
	}{
		"it selects":                      {selecting("prod"), nil, fleetOf("prod"), ""},
		"it selects none":                 {selecting("prdo"), []addonsv1.RolloutWave{wave("x", false)}, fleetOf("prod"), "spec: "},
		"there is nothing yet":            {selecting("prod"), []addonsv1.RolloutWave{wave("x", false)}, nil, ""},
		"a wave selects none":             {&metav1.LabelSelector{}, []addonsv1.RolloutWave{{Name: "one", Size: &size}, wave("cnaary", false)}, fleetOf("prod", "canary"), "spec.rollout.waves[1].clusterSelector"},
		"it is optional":                  {&metav1.LabelSelector{}, []addonsv1.RolloutWave{wave("cnaary", true)}, fleetOf("prod"), ""},
		"it selects a cluster of another": {selecting("prod"), []addonsv1.RolloutWave{wave("canary", false)}, fleetOf("prod", "canary"), "spec.rollout.waves[0].clusterSelector"},
		"it selects one":                  {&metav1.LabelSelector{}, []addonsv1.RolloutWave{wave("canary", false)}, fleetOf("prod", "canary"), ""},
	} {
		spec := &addonsv1.AddonStackSpec{ClusterSelector: tc.selector, Rollout: &addonsv1.Rollout{Waves: tc.waves}}
		got := strings.Join(stack.SelectionWarnings("team", spec, tc.clusters), "\n")
		if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Fields of a rollout that contradict each other are allowed, with a warning.
func TestWarningsOfContradictions(t *testing.T) {
	all, most := intstr.FromString("100%"), intstr.FromString("99%")
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for name, tc := range map[string]struct {
		rollout addonsv1.Rollout
		want    string
	}{
		"nothing is wrong":                   {addonsv1.Rollout{MaxFailed: &most, OnFailure: addonsv1.RolloutRollBack, ReadyWithin: minutes(5), MinReady: minutes(5)}, ""},
		"RollBack, if more than all fail":    {addonsv1.Rollout{MaxFailed: &all, OnFailure: addonsv1.RolloutRollBack}, "spec.rollout.maxFailed"},
		"Halt doesn't":                       {addonsv1.Rollout{MaxFailed: &all}, ""},
		"it has to be ready for longer":      {addonsv1.Rollout{ReadyWithin: minutes(1)}, "spec.rollout.readyWithin"},
		"longer than the default":            {addonsv1.Rollout{MinReady: minutes(61)}, "spec.rollout.readyWithin"},
		"it has to be ready for a short one": {addonsv1.Rollout{ReadyWithin: minutes(1), MinReady: minutes(0)}, ""},
	} {
		got := strings.Join(stack.Warnings(&addonsv1.AddonStackSpec{Rollout: &tc.rollout}), "\n")
		if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
