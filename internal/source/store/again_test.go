// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		first, second, want error
		calls, evicted      int
	}{
		{calls: 1},
		{first: syscall.ENOSPC, calls: 2, evicted: 1},
		{first: syscall.EDQUOT, calls: 2, evicted: 1},
		{first: syscall.ENOSPC, second: syscall.ENOSPC, want: syscall.ENOSPC, calls: 2, evicted: 1},
		{first: syscall.ENOENT, calls: 2},
		{first: syscall.ESTALE, calls: 2},
		{first: syscall.ENOENT, second: syscall.ENOENT, want: fs.ErrNotExist, calls: 2},
		{first: syscall.EROFS, want: syscall.EROFS, calls: 1},
		{first: syscall.EIO, want: syscall.EIO, calls: 1},
	} {
		t.Run(fmt.Sprint(c.first, ", ", c.second), func(t *testing.T) {
			w := newWorld(t)
			s := w.process(0)
			for _, name := range []string{"a", "b", "c"} {
				put(s, archive(name, 1000))
				w.clock.Step(time.Hour)
			}
			calls, evicted := 0, testutil.ToFloat64(evictions)
			err := s.insist(900, func(*os.Root) error {
				calls++
				return errors.Join([]error{c.first, c.second}[calls-1])
			})
			if !errors.Is(err, c.want) || calls != c.calls {
				t.Errorf("after %d calls: %v", calls, err)
			}
			if got := testutil.ToFloat64(evictions) - evicted; got != float64(c.evicted) {
				t.Errorf("%v were dropped", got)
			}
			expect(t, s, archive("c", 1000), true)
			expect(t, s, archive("a", 1000), c.evicted == 0)
		})
	}
}

func TestRemovedWhileItIsWritten(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a := archive("a", 1000)
	calls := 0
	err := s.insist(1000, func(root *os.Root) error {
		if calls++; calls == 1 {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Error(err)
			}
		}
		return write(root, nameOf(digestOf(a)), a, w.clock.Now())
	})
	if err != nil || calls != 2 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	expect(t, s, a, true)
}

// As an NFS volume whose server is away: nobody waits for it, but who was first.
func TestVolumeThatHangs(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a := archive("a", 1000)
	put(s, a)
	s.Grant(digestOf(a), "x")

	back := make(chan struct{})
	s.patience = time.Millisecond
	err := s.change(func(*os.Root) error { <-back; return nil })
	s.patience = patience
	if !errors.Is(err, errHangs) {
		t.Fatal(err)
	}
	endsSoon(t, "what comes then", func() {
		put(s, archive("b", 1000))
		s.Grant(digestOf(a), "y")
		if _, found := s.Get(digestOf(a)); found || s.Granted(digestOf(a), "x") {
			t.Error("it answers")
		}
	})
	if len(w.lines) != 1 || testutil.ToFloat64(usable) != 0 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}

	close(back)
	endsSoon(t, "what hung", func() {
		for s.hanging.Load() > 0 {
			runtime.Gosched()
		}
	})
	put(s, archive("b", 1000))
	expect(t, s, a, true)
	expect(t, s, archive("b", 1000), true)
	if len(w.lines) != 2 || testutil.ToFloat64(usable) != 1 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}
	if files := ls(t, s.directory); len(files) != 3 {
		t.Errorf("there is %q", files)
	}
}
