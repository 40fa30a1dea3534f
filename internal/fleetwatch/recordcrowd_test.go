// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/connection"
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
				store := w.clusters["ns/prod"]
				w.mu.RUnlock()
				store.mu.RLock()
				defer store.mu.RUnlock()
				if n := len(store.set.records); n > maxRecords || store.set.size > maxRecordsSize {
					t.Errorf("%d records with %d bytes are kept", n, store.set.size)
				}
				size := 0
				for _, kept := range store.set.records {
					size += kept.size
				}
				if size != store.set.size {
					t.Errorf("it counts %d bytes, and there are %d", store.set.size, size)
				}
				if few := len(made) < 10; few && len(store.set.records) != len(made)+2 {
					t.Errorf("%d records are kept, and there is room for all", len(store.set.records))
				}
			})
		}
	}
}

// TestOwnRecordsStayAtEachPath of an API server.
func TestOwnRecordsStayAtEachPath(t *testing.T) {
	t.Parallel()
	made := append(crowd(9000, "corner", "ns/prod", ""), recordOf("web", nil))
	for where, below := range connection.Paths {
		t.Run(where, func(t *testing.T) {
			w := followAt(t, below, func(w http.ResponseWriter, r *http.Request) {
				if watches(r) {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
					return
				}
				writeInPages(w, r, made)
			})
			eventually(t, "the own one is known", func() bool {
				found, known := w.Of("ns/prod")
				return known && found[web].Name == "web" && len(found) <= maxRecords
			})
		})
	}
}

// TestProvenRecordsStay in sight though their namespace has most of what names this owner: the others are in many
// namespaces, or have the place of an own release's next revisions.
func TestProvenRecordsStay(t *testing.T) {
	t.Parallel()
	var everywhere, beside []metav1.PartialObjectMetadata
	for i := range 90 {
		everywhere = append(everywhere, crowd(100, fmt.Sprint("corner-", i), "ns/prod", "")...)
	}
	for i := range 9000 {
		beside = append(beside, recordOf(fmt.Sprint("a-", i), nil))
	}
	for title, made := range map[string][]metav1.PartialObjectMetadata{"everywhere": everywhere, "beside the own ones": beside} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			proofs := map[deliver.Release]string{}
			var own []metav1.PartialObjectMetadata
			for i := range 64 {
				written := recordOf(fmt.Sprint("web-", i), map[string]string{
					record.DigestAnnotation: "sha256:1", "addons.cluster.x-k8s.io/record-format": "1", "addons.cluster.x-k8s.io/content": strings.Repeat("x", 4<<10),
				})
				written.Labels[addonsv1.AddonNamespaceLabel] = written.Namespace
				summary, _ := deliver.SummaryOf(&written.ObjectMeta)
				if summary.Proof() == "" {
					t.Fatalf("%+v has no proof", summary)
				}
				proofs[summary.Release] = summary.Proof()
				own = append(own, written)
			}
			set := newRecordSet("ns/prod", func() map[deliver.Release]string { return proofs })
			for i := range own {
				set.put(&own[i])
			}
			for i := range made {
				set.put(&made[i])
			}
			for i := range own {
				if _, there := set.records[nameOf(&own[i])]; !there {
					t.Fatalf("%s is out of sight", own[i].Name)
				}
			}
			if len(set.records) > maxRecords || len(set.records) < maxRecords/2 {
				t.Errorf("%d records are kept", len(set.records))
			}
			forged := own[0]
			forged.Annotations = map[string]string{record.OwnerAnnotation: "ns/prod"}
			set.put(&forged) // in place of a proven one, which is gone
			if kept, there := set.records[nameOf(&forged)]; !there || kept.Digest != "" {
				t.Errorf("%+v is kept in place of what was written over it", kept)
			}
		})
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
