// SPDX-License-Identifier: Apache-2.0

package room

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// TestSlowSourceAlone has one that is as slow, and nobody waits.
func TestSlowSourceAlone(t *testing.T) {
	r := New(artifact.DefaultTotalBytes, time.Minute)
	r.PaceAfter = 20 * time.Millisecond
	ctx, reading := r.Enter(t.Context())
	body := io.MultiReader(bytes.NewReader(make([]byte, 2*smallBody)), pausing(200*time.Millisecond), strings.NewReader("end"))
	got, err := Read(ctx, body, 0, "it", 10<<20)
	if err != nil || len(got) != 2*smallBody+3 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if r.TryAcquire(r.Size) {
		t.Error("what is read takes no room")
	}
	reading.Done()
	if !r.TryAcquire(r.Size) {
		t.Error("the room isn't given back")
	}
}

// TestPaceOfARoom has sources as slow as each other, while others wait.
func TestPaceOfARoom(t *testing.T) {
	for pace, ends := range map[float64]bool{leastPace: true, 1 << 10: false} {
		r := New(1<<20, time.Minute)
		r.PaceAfter, r.Pace = 100*time.Millisecond, pace
		ctx, reading := r.Enter(t.Context())
		if err := Reserve(ctx, r.Size); err != nil {
			t.Fatal(err)
		}
		go func() {
			other, waiting := r.Enter(t.Context())
			defer waiting.Done()
			_ = Reserve(other, r.Size)
		}()
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			_, _ = io.Copy(io.Discard, Measured(ctx, bytes.NewReader(make([]byte, 100)))) // 10 KiB a second
		}
		if (ctx.Err() != nil) != ends {
			t.Errorf("at a pace of %v: %v", pace, context.Cause(ctx))
		}
		reading.Done()
	}
}

// pausing ends after a while.
type pausing time.Duration

func (p pausing) Read([]byte) (int, error) { time.Sleep(time.Duration(p)); return 0, io.EOF }

func TestRoomIsKeptUntilUnpacked(t *testing.T) {
	r := New(artifact.DefaultTotalBytes, time.Minute)
	ctx, flight := r.Carry(t.Context())
	ctx, reading := r.Enter(ctx)
	if _, err := Read(ctx, bytes.NewReader(make([]byte, 1<<20)), 1<<20, "it", 10<<20); err != nil {
		t.Fatal(err)
	}
	reading.Leave(ctx)
	if r.TryAcquire(r.Size) {
		t.Error("the room is given back before it is unpacked")
	}
	flight.Drop()
	if !r.TryAcquire(r.Size) {
		t.Error("the room isn't given back")
	}
}

// TestNobodyWaitsWithRoom has two who want more than there is, each a part after the other.
func TestNobodyWaitsWithRoom(t *testing.T) {
	r := New(artifact.DefaultTotalBytes, time.Minute)
	first, one := r.Enter(t.Context())
	_, other := r.Enter(t.Context())
	for _, reading := range []*Reading{one, other} {
		if _, err := reading.take(first, r.Size/2); err != nil {
			t.Fatal(err)
		}
	}
	_, err := one.take(first, r.Size)
	if reasonOf(err) != failure.SourceUnavailable {
		t.Errorf("got %v", err)
	}
	other.Done()
	if _, err = one.take(first, r.Size); err != nil {
		t.Error(err)
	}
}

func TestBodiesOfAnyLength(t *testing.T) {
	for name, test := range map[string]struct {
		length, size, most int64
		reason             string
	}{
		"small":                 {10, 10, 100, ""},
		"small, length unknown": {-1, 10, 100, ""},
		"small, too large":      {-1, 101, 100, failure.ArtifactTooLarge},
		"at the small limit":    {smallBody, smallBody, 1 << 20, ""},
		"large":                 {smallBody + 1, smallBody + 1, 1 << 20, ""},
		"large, length unknown": {-1, smallBody + 1, 1 << 20, ""},
		"large, length 0":       {0, 1 << 20, 1 << 20, ""},
		"as large as may be":    {1 << 20, 1 << 20, 1 << 20, ""},
		"too large":             {-1, 1<<20 + 1, 1 << 20, failure.ArtifactTooLarge},
		"longer than it says":   {smallBody + 5, smallBody + 6, 1 << 20, "trailing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(artifact.DefaultTotalBytes, time.Minute)
			ctx, reading := r.Enter(t.Context())
			defer reading.Done()
			got, err := Read(ctx, bytes.NewReader(make([]byte, test.size)), test.length, "it", test.most)
			switch {
			case test.reason == "" && (err != nil || int64(len(got)) != test.size):
				t.Errorf("%d bytes, %v", len(got), err)
			case test.reason == "trailing":
				if err == nil {
					t.Error("it was accepted")
				}
			case test.reason != "" && reasonOf(err) != test.reason:
				t.Errorf("got %v", err)
			}
			if over := reading.held - max(test.size, smallBody); over > smallBody {
				t.Errorf("%d bytes more are held than are needed", over)
			}
		})
	}
}

func reasonOf(err error) string {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known.Reason
	}
	return ""
}

// TestBeginning has answers that begin to come, each of which takes a part of the room:
// those that don't come yet take none, and those that stop give way.
func TestBeginning(t *testing.T) {
	const places = 4
	r := New(places<<10, time.Minute)
	r.Each, r.PaceAfter = 1<<10, 20*time.Millisecond
	silent := make([]*Reading, 100)
	for i := range silent {
		_, silent[i] = r.Enter(t.Context())
		defer silent[i].Done()
	}
	large := New(1<<20, time.Minute)
	if err := large.Acquire(t.Context(), large.Size); err != nil {
		t.Fatal(err)
	}
	var stopped []context.Context
	for range places {
		outer, entered := r.Enter(t.Context())
		defer entered.Done()
		inner, within := large.Enter(outer)
		defer within.Done()
		if err := Begin(inner); err != nil {
			t.Fatal(err)
		}
		stopped = append(stopped, inner)
	}
	if r.TryAcquire(1) {
		t.Fatal("those that come take no room")
	}
	time.Sleep(10 * r.PaceAfter)
	for _, ctx := range stopped {
		if ctx.Err() != nil {
			t.Fatalf("nobody waits: %v", context.Cause(ctx))
		}
	}

	waits := make(chan error)
	go func() { waits <- Reserve(stopped[0], large.Size) }()
	for large.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	other, entered := r.Enter(t.Context())
	defer entered.Done()
	go func() { _ = Begin(other) }()
	for _, ctx := range stopped[1:] {
		<-ctx.Done()
		if why := Why(ctx, ctx.Err()); why.Error() != tooSlow().Error() {
			t.Errorf("it ended for %v", why)
		}
	}
	if why := Why(stopped[0], <-waits); why.Error() != noRoom().Error() {
		t.Errorf("who waits for room that others have ended for %v", why)
	}
}
