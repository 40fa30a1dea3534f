// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What was used while the clock was ahead isn't in use until that time comes.
func TestClockThatIsSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{3 * time.Hour, 365 * 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			w := newWorld(t)
			now := w.clock.Now()
			w.clock.SetTime(now.Add(ahead))
			s := w.process(4000)
			a, b, c := archive("a", 1000), archive("b", 1000), archive("c", 1000)
			put(s, a, b, c)
			torn := filepath.Join(w.dir, layout, temporary+"torn")
			if err := os.WriteFile(torn, make([]byte, 900), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(torn, w.clock.Now(), w.clock.Now()); err != nil {
				t.Fatal(err)
			}

			w.clock.SetTime(now)
			s = w.process(4000)
			if _, err := os.Lstat(torn); !os.IsNotExist(err) {
				t.Errorf("what a crash left stays (%v)", err)
			}
			expect(t, s, b, true) // from now on it is known when it was used
			for day := range 5 {
				w.clock.SetTime(now.Add(time.Duration(day) * 24 * time.Hour))
				expect(t, s, b, true)
				fresh := archive(fmt.Sprint("day", day), 1500)
				put(s, fresh)
				expect(t, s, fresh, true)
			}
			expect(t, s, a, false)
			if len(w.lines) > 0 {
				t.Errorf("the log says %q", w.lines)
			}
		})
	}
}
