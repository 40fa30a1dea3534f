// SPDX-License-Identifier: Apache-2.0

package fleetwatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/held"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal(what)
		}
	}
}

// TestListsOfManyKinds has a cluster answer the lists of 30 kinds with 3.5 MiB each, and keep the last byte of each back for a while.
// Not all of them find room at the same time. Each kind is known in the end.
func TestListsOfManyKinds(t *testing.T) {
	long.InCI(t)
	const kinds, limit = 30, 16 << 20
	var resources []string
	sums := drift.Sums{}
	for i := range kinds {
		resources = append(resources, fmt.Sprintf(`{"name":"k%d","kind":"K%d","namespaced":true}`, i, i))
		sums[schema.GroupKind{Group: "x", Kind: fmt.Sprint("K", i)}] = 1
	}
	finish := make(chan struct{})
	var lists atomic.Int32
	memory := budget.New(budget.Limits{Cluster: limit})
	conn := connection.Counting(t, memory, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"x","versions":[{"groupVersion":"x/v1","version":"v1"}]}]}`)
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`)
		case r.URL.Path == "/apis/x/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x/v1","resources":[`+strings.Join(resources, ",")+`]}`)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			lists.Add(1)
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`+strings.Repeat(" ", 7<<19))
			w.(http.Flusher).Flush()
			select {
			case <-finish:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, `]}`)
		}
	})
	w := fleetwatch.NewObjects(func(multicluster.ClusterName) {})
	release := deliver.Release{Namespace: "a", Name: "a"}
	w.Watch("ns/prod", conn, map[deliver.Release]fleetwatch.Expected{release: {Applied: sums.String(), Objects: kinds}})
	eventually(t, "no list waits for memory", func() bool { return memory.Usage().Waiting > 0 && memory.Usage().Claimed > limit/2 })
	if u := memory.Usage(); u.Claimed > limit {
		t.Errorf("%d MiB are claimed", u.Claimed>>20)
	}
	close(finish)
	eventually(t, "not all kinds are known", func() bool { _, listed := w.Changed(conn, release); return listed })
	if unwatched := w.State(conn, release).Unwatched; len(unwatched) > 0 {
		t.Errorf("can't be watched: %v", unwatched)
	}
	eventually(t, "what was read is still claimed", func() bool { return memory.Usage().Claimed < 1<<20 })
	t.Logf("%d lists for %d kinds", lists.Load(), kinds)
}

// TestFullMemoryPasses tells a cluster that answers with too much from memory that is full.
func TestFullMemoryPasses(t *testing.T) {
	for reason, lasting := range map[string]bool{fleet.WaitingForMemory: false, fleet.ReasonResponseTooLarge: true, fleet.TooManyKinds: true} {
		if fleetwatch.IsLasting(fmt.Errorf("listing: %w", &fleet.LimitError{Reason: reason})) != lasting {
			t.Errorf("%s: lasting is %v", reason, !lasting)
		}
	}
}

// pages are answers with one object each.
type pages struct {
	metadata.ResourceInterface
	arrive func(context.Context)
	left   int
}

func (p *pages) List(ctx context.Context, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	p.arrive(ctx)
	page := &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 1)}
	if p.left--; p.left > 0 {
		page.Continue = "x"
	}
	return page, nil
}

// TestPagesCount sees that a page counts until its objects were taken in.
func TestPagesCount(t *testing.T) {
	taken := 0
	_, err := fleetwatch.ListPages(t.Context(), &pages{arrive: held.Answers(t), left: 3}, metav1.ListOptions{}, func(*metav1.PartialObjectMetadata) error {
		taken++
		return nil
	})
	must.Succeed(t, err)
	must.Equal(t, 3, taken, "objects")
}
