// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	var b backoff
	now := time.Unix(0, 0)
	var got []time.Duration
	for range 7 {
		o := b.fail(now, "d", Outcome{Message: "m"})
		got = append(got, o.RetryAfter)
		if waiting, early := b.waiting(now.Add(o.RetryAfter-time.Second), "d"); !early || waiting.RetryAfter != time.Second {
			t.Errorf("waiting: %+v %t", waiting, early)
		}
		if _, early := b.waiting(now, "other"); early {
			t.Error("other inputs don't wait")
		}
		now = now.Add(o.RetryAfter)
		if _, early := b.waiting(now, "d"); early {
			t.Error("it is time")
		}
	}
	s := time.Second
	if d := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}, got); d != "" {
		t.Error(d)
	}
}
