// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"
)

// What took all the time of a worker isn't tried again at once, by whomever; what differs is.
func TestKilledRenderingsArePaused(t *testing.T) {
	r := newRenderer(t, func(o *Options) { o.Timeout = 500 * time.Millisecond })
	now := time.Now()
	r.SetClock(func() time.Time { return now })
	spin := requestFor(template1("{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"))
	killed := func() bool {
		before := r.PIDs()
		_, err := r.Chart(t.Context(), spin)
		wantReason(t, err, ReasonRenderTimeout)
		after := r.PIDs()
		return len(before) == 0 || len(after) == 0
	}
	if !killed() {
		t.Error("the first wasn't tried")
	}
	for pause := FirstPause; pause <= 4*FirstPause; pause *= 2 {
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
