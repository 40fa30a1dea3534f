// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
)

const (
	mib = 1 << 20
	// window is what an answer counts of which nothing was read yet.
	window = 128 << 10
)

// TestUnfinishedAnswers has a cluster answer 60 lists with 31 MiB each, and keep the last byte of each back.
func TestUnfinishedAnswers(t *testing.T) {
	const lists, most = 60, 64
	memory := budget.New(budget.Limits{Cluster: most * mib})
	finish := make(chan struct{})
	begin, end := largePage(t)
	o := fleet.Options{Memory: memory, QPS: 1000, Burst: 1000, ProbeInterval: 100 * time.Millisecond, ListTimeout: time.Hour}
	conn := start(t, o).connect(t, "a/b", "", func(r *http.Request) http.HandlerFunc {
		if !strings.HasPrefix(r.URL.Path, "/apis/x") {
			return nil
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(begin)
			w.(http.Flusher).Flush()
			<-finish
			_, _ = w.Write(end)
		}
	})
	before := liveMiB()
	ctx, timeOut := context.WithCancelCause(t.Context()) // by the test, however long it takes to come so far
	defer timeOut(nil)
	full := make(chan error, lists)
	var all sync.WaitGroup
	for i := range lists {
		all.Go(func() {
			_, err := conn.Metadata().Resource(schema.GroupVersionResource{Group: "x", Version: "v1", Resource: fmt.Sprint("k", i)}).List(ctx, metav1.ListOptions{Limit: 500})
			full <- err
		})
	}
	soon(t, func() string {
		if memory.Usage().Waiting < lists-most/31 { // the others are read but for their last byte
			return fmt.Sprintf("%+v", memory.Usage())
		}
		return ""
	})
	usage := memory.Usage()
	live := liveMiB() - before
	t.Logf("%d lists wait for memory: %d MiB are claimed, and %.0f MiB on the heap", usage.Waiting, usage.Claimed>>20, live)
	if usage.Claimed > most*mib || live > 1.25*most { // a buffer that grows is a quarter larger than what is in it
		t.Errorf("%d MiB are claimed, and %.0f MiB on the heap; at most %d may be", usage.Claimed>>20, live, most)
	}
	timeOut(context.DeadlineExceeded)
	all.Wait()
	close(finish)
	refused := 0
	for range lists {
		err := <-full
		limit, waited := errors.AsType[*fleet.LimitError](err)
		switch {
		case waited && (limit.Reason != fleet.WaitingForMemory || limit.Discovery || !strings.Contains(limit.Message, "cluster a/b has all the memory that it may have")):
			t.Errorf("a list ends with %v", limit)
		case waited:
			refused++
		case err == nil:
			t.Error("a list ends without its last byte")
		}
	}
	if refused < lists/2 { // a few get some memory of those that end before them
		t.Errorf("%d lists were refused for want of memory, %d waited for it", refused, usage.Waiting)
	}
	if conn.Context().Err() != nil {
		t.Error("waiting for memory counts as a cluster that doesn't answer")
	}
	claims(t, memory, 0)
}

// largePage returns a list of 31 MiB, compressed, without its last byte, and that byte.
func largePage(t *testing.T) (begin, end []byte) {
	t.Helper()
	var page bytes.Buffer
	z := gzip.NewWriter(&page)
	_, _ = io.WriteString(z, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`)
	for range 31 {
		_, _ = io.WriteString(z, `{"metadata":{"name":"x","namespace":"x","annotations":{"x":"`+strings.Repeat("y", mib)+`"}}},`)
	}
	_ = z.Flush()
	begin = bytes.Clone(page.Bytes())
	page.Reset()
	_, _ = io.WriteString(z, `{"metadata":{"name":"z"}}]}`)
	_ = z.Close()
	return begin, page.Bytes()
}

// TestAnswersCount follows what is claimed of answers until they are used.
func TestAnswersCount(t *testing.T) {
	const none = 1 // in place of a status: there is no answer
	memory := budget.New(budget.Limits{Cluster: 64 * mib})
	answered := make(chan struct{})
	var status atomic.Int32
	conn := start(t, fleet.Options{Memory: memory}).connect(t, "a/b", "", func(r *http.Request) http.HandlerFunc {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			switch code := int(status.Load()); code {
			case 0:
			case none:
				panic(http.ErrAbortHandler)
			default:
				w.WriteHeader(code)
			}
			writing(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},`, 1000, "")(w, r)
			w.(http.Flusher).Flush()
			select {
			case <-answered:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, `"items":[]}`)
		}
	})
	claimed := func(t *testing.T, want int64) {
		t.Helper()
		soon(t, func() string {
			if u := memory.Usage(); u.Claimed != want {
				return fmt.Sprintf("%d KiB are claimed, want %d", u.Claimed>>10, want>>10)
			}
			return ""
		})
	}
	const read = 1024 << 10 // in steps of 64 KiB
	list := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Metadata().Resource(configMaps).List(ctx, metav1.ListOptions{})
			ended <- err
		}()
		return ended
	}
	t.Run("read", func(t *testing.T) {
		ended := list(t.Context())
		claimed(t, read+window)
		answered <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		claimed(t, 0)
	})
	t.Run("used", func(t *testing.T) {
		ctx, release := budget.Holding(t.Context())
		ended := list(ctx)
		answered <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		claimed(t, read)
		release()
		claimed(t, 0)
	})
	t.Run("given up", func(t *testing.T) {
		ctx, release := budget.Holding(t.Context())
		defer release()
		ctx, cancel := context.WithCancel(ctx)
		ended := list(ctx)
		claimed(t, read+window)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		claimed(t, 0)
	})
	t.Run("refused", func(t *testing.T) {
		status.Store(http.StatusForbidden)
		defer status.Store(0)
		ended := list(t.Context())
		claimed(t, read+window)
		answered <- struct{}{}
		if err := <-ended; err == nil {
			t.Error("it isn't refused")
		}
		claimed(t, 0)
	})
	t.Run("without an answer", func(t *testing.T) {
		status.Store(none)
		defer status.Store(0)
		if err := <-list(t.Context()); err == nil {
			t.Error("there is an answer")
		}
		claimed(t, 0)
	})
}

// TestWatchesCount sees that a watch counts the event that is under way, and nothing between two.
func TestWatchesCount(t *testing.T) {
	memory := budget.New(budget.Limits{Cluster: 64 * mib})
	send := make(chan string)
	conn := start(t, fleet.Options{Memory: memory}).connect(t, "a/b", "", func(r *http.Request) http.HandlerFunc {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			for {
				select {
				case text := <-send:
					_, _ = io.WriteString(w, text)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan watch.Event), make(chan error, 1)
	go func() {
		ended <- conn.WatchMetadata(ctx, configMaps, metav1.ListOptions{}, func(e watch.Event) { events <- e })
	}()
	event := `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b"` + strings.Repeat(" ", 500<<10)
	for step, tc := range []struct {
		sent    string
		claimed int64
		event   bool
	}{
		{event, 512 << 10, false},
		{strings.Repeat(" ", 100<<10), 640 << 10, false},
		{"}}}\n", 0, true},
		{event[:len(event)-100<<10] + "}}}\n" + event, 512 << 10, true},
		{"}}}\n", 0, true},
		{event[:200], 0, false},
		{"}}}\n", 0, true},
		{event, 512 << 10, false},
	} {
		send <- tc.sent
		if tc.event {
			<-events
		}
		soon(t, func() string {
			if u := memory.Usage(); u.Claimed != tc.claimed {
				return fmt.Sprintf("step %d: %d KiB are claimed, want %d", step, u.Claimed>>10, tc.claimed>>10)
			}
			return ""
		})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	claims(t, memory, 0)
}

// TestFullMemory has a cluster asked for something while there is no memory for the answer.
func TestFullMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		limits budget.Limits
		of     budget.Tenant
		full   string
	}{
		"of the cluster":   {budget.Limits{Cluster: 64 * mib}, budget.Tenant{Namespace: "a", Cluster: "b"}, "cluster a/b has all the memory that it may have"},
		"of the namespace": {budget.Limits{Namespace: 64 * mib}, budget.Tenant{Namespace: "a", Cluster: "c"}, "namespace a has all the memory that it may have"},
		"of the process":   {budget.Limits{All: 64 * mib}, budget.Tenant{Namespace: "b", Cluster: "c"}, "the process has all the memory that it may have"},
	} {
		for where, below := range paths {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				memory := budget.New(tc.limits)
				var asked atomic.Int32
				o := fleet.Options{Memory: memory, ProbeInterval: time.Hour, ProbeRetry: time.Millisecond, DirectReads: true}
				c := start(t, o)
				conn := c.connect(t, "a/b", below, func(*http.Request) http.HandlerFunc {
					asked.Add(1)
					return nil
				})
				if _, err := conn.Facts(t.Context()); err != nil {
					t.Fatal(err)
				}
				asked.Store(0)
				kept := memory.Usage().Claimed
				other := memory.Lasting(tc.of)
				if err := other.Grow(t.Context(), 64*mib-kept-window/2); err != nil {
					t.Fatal(err)
				}
				before := c.probes.Load()
				get := func(ctx context.Context) error {
					return client.IgnoreNotFound(conn.Client().Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{}))
				}
				brief, cancel := context.WithTimeout(t.Context(), 2*time.Second) // of which there is nothing to do but to wait
				defer cancel()
				limit, ok := errors.AsType[*fleet.LimitError](get(brief))
				if !ok || limit.Reason != fleet.WaitingForMemory || limit.Discovery || !strings.Contains(limit.Message, tc.full) {
					t.Errorf("got %v", limit)
				}
				conn.InvalidateFacts()
				brief, cancel = context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := conn.Facts(brief)
				if limit, ok := errors.AsType[*fleet.LimitError](err); !ok || limit.Reason != fleet.WaitingForMemory || !limit.Discovery {
					t.Errorf("got %v", err)
				}
				if n := asked.Load(); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
				if c.probes.Load() != before || conn.Context().Err() != nil {
					t.Error("it counts as a cluster that doesn't answer")
				}
				other.End()
				if err := get(t.Context()); err != nil {
					t.Errorf("once there is memory: %v", err)
				}
			})
		}
	}
}

// TestAnswersThatAreLargerThanAllMemory are refused, and others are read.
func TestAnswersThatAreLargerThanAllMemory(t *testing.T) {
	conn := start(t, fleet.Options{Memory: budget.New(budget.Limits{Cluster: mib})}).connect(t, "a/b", "", func(r *http.Request) http.HandlerFunc {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") {
			return nil
		}
		kib := 500
		if r.URL.Query().Get("labelSelector") != "" {
			kib = 1100
		}
		return writing(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},`, kib, `"items":[]}`)
	})
	for selector, fits := range map[string]bool{"": true, "large": false} {
		_, err := conn.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		limit, full := errors.AsType[*fleet.LimitError](err)
		if (err == nil) != fits || full == fits || full && (limit.Reason != fleet.WaitingForMemory || !strings.Contains(limit.Message, "cluster a/b may hold 1048576")) {
			t.Errorf("%q: %v", selector, err)
		}
	}
}
