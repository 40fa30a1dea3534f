// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// A job that took all the time of a worker isn't tried again at once, by whomever. Another job is.
func TestKilledRenderingsArePaused(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 500 * time.Millisecond })
	now := time.Now()
	r.SetClock(func() time.Time { return now })
	spin := rendering.ChartJob(rendering.ChartWith("{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"))
	killed := func() bool {
		before := r.PIDs()
		_, err := r.Chart(t.Context(), spin)
		rendering.WantReason(t, err, job.ReasonRenderTimeout)
		after := r.PIDs()
		return len(before) == 0 || len(after) == 0
	}
	if !killed() {
		t.Error("the first wasn't tried")
	}
	for pause := render.FirstPause; pause <= 4*render.FirstPause; pause *= 2 {
		mustRender(t, r) // a worker is there now
		now = now.Add(pause - time.Second)
		if killed() {
			t.Errorf("it was tried within %s", pause)
		}
		now = now.Add(time.Second)
		if !killed() {
			t.Errorf("it wasn't tried after %s", pause)
		}
	}
}
