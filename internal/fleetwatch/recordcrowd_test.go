// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// crowd are records of an owner that somebody makes up in a namespace of theirs.
func crowd(number int, namespace, owner, text string) []metav1.PartialObjectMetadata {
	records := make([]metav1.PartialObjectMetadata, number)
	for i := range records {
		records[i] = recordOf(fmt.Sprint("made-up-", i), map[string]string{record.OwnerAnnotation: owner, record.DigestAnnotation: text})
		records[i].Namespace = namespace
	}
	return records
}

// TestOwnRecordsStay in sight, however many others somebody makes, and wherever these come from.
func TestOwnRecordsStay(t *testing.T) {
	t.Parallel()
	for title, made := range map[string][]metav1.PartialObjectMetadata{
		"of nobody":                 crowd(9000, "corner", "", ""),
		"of another owner":          crowd(9000, "corner", "other/prod", ""),
		"of this owner":             crowd(9000, "corner", "ns/prod", ""),
		"of this owner, large ones": crowd(40, "corner", "ns/prod", strings.Repeat("x", 500<<10)),
		"of this owner, and few":    crowd(9, "corner", "ns/prod", ""),
	} {
		for way, listed := range map[string]bool{"listed": true, "coming one by one": false} {
			t.Run(title+", "+way, func(t *testing.T) {
				t.Parallel()
				var selector atomic.Value
				w := follow(t, func(w http.ResponseWriter, r *http.Request) {
					selector.Store(r.URL.Query().Get("labelSelector"))
					switch {
					case watches(r):
						for i := 0; i < len(made) && !listed; i++ {
							_ = writeEvent(w, "ADDED", made[i])
						}
						_ = writeEvent(w, "ADDED", recordOf("late", nil))
						w.(http.Flusher).Flush()
						<-r.Context().Done()
					case !listed:
						writeList(w, "", recordOf("web", nil))
					default:
						writeInPages(w, r, append(made, recordOf("web", nil)))
					}
				})
				eventually(t, "the own ones are known", func() bool {
					found, known := w.Of("ns/prod")
					return known && found[web].Name == "web" && found[deliver.Release{Namespace: "apps", Name: "late"}].Name == "late"
				})
				if err := w.Failure("ns/prod"); err != nil {
					t.Error(err)
				}
				if text, _ := selector.Load().(string); !strings.Contains(text, record.OwnerAnnotation+"=ns_prod") {
					t.Errorf("the server is asked for %s", text)
				}
				w.mu.RLock()
				store := &w.clusters["ns/prod"].store
				w.mu.RUnlock()
				store.mu.RLock()
				defer store.mu.RUnlock()
				if n := len(store.set.records); n > maxRecords || store.set.size > maxRecordsSize {
					t.Errorf("%d records with %d bytes are kept", n, store.set.size)
				}
				sizes := map[string]int{}
				for _, kept := range store.set.records {
					sizes[kept.Namespace] += sizeOf(kept)
				}
				if fmt.Sprint(sizes) != fmt.Sprint(store.set.sizes) {
					t.Errorf("it counts %v, and there are %v", store.set.sizes, sizes)
				}
				if few := len(made) < 10; few && len(store.set.records) != len(made)+2 {
					t.Errorf("%d records are kept, and there is room for all", len(store.set.records))
				}
			})
		}
	}
}

// writeInPages writes a page of a list: 500 records, or 5 of those that are large.
func writeInPages(w http.ResponseWriter, r *http.Request, records []metav1.PartialObjectMetadata) {
	at, page := 0, 500
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &at)
	if len(records) < 100 {
		page = 5
	}
	end, next := min(at+page, len(records)), ""
	if end < len(records) {
		next = fmt.Sprint(end)
	}
	writeList(w, next, records[at:end]...)
}
