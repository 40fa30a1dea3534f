// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestWindows(t *testing.T) {
	window := func(start string, duration time.Duration, zone string) addonsv1.RolloutWindow {
		return addonsv1.RolloutWindow{Start: start, Duration: metav1.Duration{Duration: duration}, TimeZone: zone}
	}
	nights := window("0 22 * * 1-4", 8*time.Hour, "Europe/Berlin")
	for name, tc := range map[string]struct {
		windows []addonsv1.RolloutWindow
		now     string
		closed  bool
		until   string
	}{
		"none":                     {now: "2026-03-04T12:00:00Z"},
		"before it opens":          {windows: []addonsv1.RolloutWindow{nights}, now: "2026-03-04T12:00:00Z", closed: true, until: "2026-03-04T21:00:00Z"},
		"as it opens":              {windows: []addonsv1.RolloutWindow{nights}, now: "2026-03-04T21:00:00Z", until: "2026-03-05T05:00:00Z"},
		"in it, the day after":     {windows: []addonsv1.RolloutWindow{nights}, now: "2026-03-05T04:59:00Z", until: "2026-03-05T05:00:00Z"},
		"as it closes":             {windows: []addonsv1.RolloutWindow{nights}, now: "2026-03-05T05:00:00Z", closed: true, until: "2026-03-05T21:00:00Z"},
		"a weekend":                {windows: []addonsv1.RolloutWindow{nights}, now: "2026-03-06T21:00:00Z", closed: true, until: "2026-03-09T21:00:00Z"},
		"in summer":                {windows: []addonsv1.RolloutWindow{nights}, now: "2026-07-01T12:00:00Z", closed: true, until: "2026-07-01T20:00:00Z"},
		"the one that ends last":   {windows: []addonsv1.RolloutWindow{nights, window("0 0 * * *", 12*time.Hour, "")}, now: "2026-03-05T01:00:00Z", until: "2026-03-05T12:00:00Z"},
		"the one that opens first": {windows: []addonsv1.RolloutWindow{nights, window("0 14 * * *", time.Hour, "")}, now: "2026-03-04T12:00:00Z", closed: true, until: "2026-03-04T14:00:00Z"},
		"longer than its pause":    {windows: []addonsv1.RolloutWindow{window("0 0 * * *", 48*time.Hour, "")}, now: "2026-03-04T12:00:00Z", until: "2026-03-05T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := rollout.StrategyOf(&addonsv1.Rollout{Windows: tc.windows}, field.NewPath("spec", "rollout"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			moment, err := time.Parse(time.RFC3339, tc.now)
			must.Succeed(t, err)
			closed, until := rollout.Closed(s.Windows, moment)
			text := ""
			if !until.IsZero() {
				text = until.UTC().Format(time.RFC3339)
			}
			if closed != tc.closed || text != tc.until {
				t.Errorf("closed %t until %s", closed, text)
			}
		})
	}
}

func TestStrategyOfWhatIsWrong(t *testing.T) {
	hour := metav1.Duration{Duration: time.Hour}
	for name, r := range map[string]addonsv1.Rollout{
		"spec.rollout.windows[0].start":         {Windows: []addonsv1.RolloutWindow{{Start: "0 25 * * *", Duration: hour}}},
		"spec.rollout.windows[1].start":         {Windows: []addonsv1.RolloutWindow{{Start: "0 5 * * *", Duration: hour}, {Start: "0 0 31 2 *", Duration: hour}}},
		"spec.rollout.windows[0].timeZone":      {Windows: []addonsv1.RolloutWindow{{Start: "0 5 * * *", Duration: hour, TimeZone: "../etc/passwd"}}},
		"spec.rollout.waves[0]":                 {Waves: []addonsv1.RolloutWave{{Name: "x"}}},
		"spec.rollout.waves[0].clusterSelector": {Waves: []addonsv1.RolloutWave{{Name: "x", ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := rollout.StrategyOf(&r, field.NewPath("spec", "rollout"))
			if len(errs) != 1 || errs[0].Field != name {
				t.Errorf("got %v", errs)
			}
		})
	}
}
