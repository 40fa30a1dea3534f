// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/must"
)

// awaited is how long a test waits for what should take milliseconds.
const awaited = 60 * time.Second

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, awaited, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func noProofs(context.Context, multicluster.ClusterName) map[deliver.Release]string { return nil }

// follow watches the records of a server.
func follow(t *testing.T, handler http.HandlerFunc, change ...func(*Records)) *Records {
	t.Helper()
	return followAt(t, "", handler, change...)
}

// followAt watches the records of a server below a path.
func followAt(t *testing.T, below string, handler http.HandlerFunc, change ...func(*Records)) *Records {
	t.Helper()
	w := NewRecords(multicluster.ClusterName.String, noProofs, func(multicluster.ClusterName) {}, func(multicluster.ClusterName) {})
	for _, f := range change {
		f(w)
	}
	conn := connection.At(t, below, handler)
	must.Succeed(t, w.Engage(conn.Context(), "ns/prod", conn))
	return w
}

// recordOf is what an API server shows of a record of ns/prod, if the annotations name no other owner.
func recordOf(release string, annotations map[string]string) metav1.PartialObjectMetadata {
	secret := secretMetadata()
	secret.Namespace, secret.Name, secret.ResourceVersion = "apps", "sh.helm.release.v1."+release+".v1", "2"
	secret.Labels = map[string]string{"owner": "helm", "name": release, "version": "1", "status": "deployed", addonsv1.AddonLabel: release, "other": "x"}
	secret.Annotations = map[string]string{record.OwnerAnnotation: "ns/prod"}
	maps.Copy(secret.Annotations, annotations)
	return *secret
}

func secretMetadata() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

func writeList(w io.Writer, next string, records ...metav1.PartialObjectMetadata) {
	writeListAt(w, "2", next, records...)
}

func writeListAt(w io.Writer, version, next string, records ...metav1.PartialObjectMetadata) {
	list := &metav1.PartialObjectMetadataList{Items: records}
	list.APIVersion, list.Kind, list.ResourceVersion, list.Continue = "meta.k8s.io/v1", "PartialObjectMetadataList", version, next
	_ = json.NewEncoder(w).Encode(list)
}

func writeEvent(w io.Writer, kind string, record metav1.PartialObjectMetadata) error {
	record.APIVersion, record.Kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	return json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": record})
}

func watches(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func TestRecordsAreListedAndFollowed(t *testing.T) {
	events := make(chan metav1.PartialObjectMetadata)
	long := strings.Repeat("x", 100<<10)
	w := follow(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case watches(r):
			w.(http.Flusher).Flush()
			for {
				select {
				case e := <-events:
					_ = writeEvent(w, "ADDED", e)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		case r.URL.Query().Get("continue") == "":
			writeList(w, "more", recordOf("one", map[string]string{record.DigestAnnotation: "a", "notes": long}))
		default:
			writeList(w, "", recordOf("two", nil))
		}
	})
	digests := func() map[string]string {
		found, _ := w.Of("ns/prod")
		got := map[string]string{}
		for release, summary := range found {
			got[release.Name] = summary.Digest
		}
		return got
	}
	eventually(t, "two pages", func() bool { return fmt.Sprint(digests()) == "map[one:a two:]" })
	events <- recordOf("three", map[string]string{record.DigestAnnotation: "c"})
	eventually(t, "an event", func() bool { return fmt.Sprint(digests()) == "map[one:a three:c two:]" })
	if err := w.Failure("ns/prod"); err != nil {
		t.Error(err)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if size := w.clusters["ns/prod"].set.size; size > 10_000 {
		t.Errorf("%d bytes are kept", size)
	}
}

// A connection that is over takes nothing of the next one along.
func TestRecordsOfTheNextConnectionStay(t *testing.T) {
	w, previous, next := NewRecords(multicluster.ClusterName.String, noProofs, func(multicluster.ClusterName) {}, func(multicluster.ClusterName) {}), &clusterRecords{}, &clusterRecords{}
	w.clusters["ns/prod"] = next
	if w.forget("ns/prod", previous); w.clusters["ns/prod"] != next {
		t.Error("those of the new connection are gone")
	}
	if w.forget("ns/prod", next); len(w.clusters) != 0 {
		t.Error("they aren't forgotten")
	}
}

// What can't be read or followed is told, and no longer once it can.
func TestRecordsThatCannotBeRead(t *testing.T) {
	limit := func(reason, says string) func(error) bool {
		return func(err error) bool {
			limit, ok := errors.AsType[*fleet.LimitError](err)
			return ok && limit.Reason == reason && strings.Contains(limit.Message, says)
		}
	}
	says := func(text string) func(error) bool {
		return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
	}
	for title, tc := range map[string]struct {
		handler http.HandlerFunc
		want    func(error) bool
		timeout time.Duration
	}{
		"a list that hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, says("context deadline exceeded"), 2 * time.Second},
		"a list that asks to come back in years": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}, says("context deadline exceeded"), 2 * time.Second},
		"a list that is refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, apierrors.IsForbidden, 0},
		"pages without end": {func(w http.ResponseWriter, _ *http.Request) {
			large := recordOf("x", map[string]string{record.DigestAnnotation: strings.Repeat("x", 1<<20)})
			writeList(w, "more", large, large, large)
		}, limit(reasons.ResponseTooLarge, "GET /api/v1/secrets"), 0},
		"an event without end": {func(w http.ResponseWriter, r *http.Request) {
			if !watches(r) {
				writeList(w, "")
				return
			}
			_, err := io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`)
			for err == nil {
				_, err = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		}, says("an event of more than 4096 KiB"), 0},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var healed atomic.Bool
			w := follow(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !healed.Load():
					tc.handler(w, r)
				case watches(r):
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				default:
					writeList(w, "", recordOf("one", nil))
				}
			}, func(w *Records) { w.timeout = tc.timeout })
			eventually(t, "told", func() bool { return tc.want(w.Failure("ns/prod")) })
			healed.Store(true)
			eventually(t, "read", func() bool {
				found, known := w.Of("ns/prod")
				return known && len(found) == 1
			})
		})
	}
}

// A cluster that several management clusters fill starts no reconcile of one with each write of
// another.
func TestRecordsOfOthers(t *testing.T) {
	t.Parallel()
	owned := func(release, owner string) metav1.PartialObjectMetadata {
		return recordOf(release, map[string]string{record.OwnerAnnotation: owner, record.DigestAnnotation: "sha256:1"})
	}
	var changes atomic.Int32
	w := follow(t, func(w http.ResponseWriter, r *http.Request) {
		if !watches(r) {
			writeList(w, "")
			return
		}
		for _, record := range []metav1.PartialObjectMetadata{owned("theirs", "other/prod"), owned("another", "other/prod"), owned("ours", "ns/prod")} {
			_ = writeEvent(w, "ADDED", record)
		}
		_ = writeEvent(w, "DELETED", owned("theirs", "other/prod"))
		_ = writeEvent(w, "DELETED", owned("ours", "ns/prod"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, func(w *Records) { w.changed = func(multicluster.ClusterName) { changes.Add(1) } })
	eventually(t, "all is read", func() bool {
		found, known := w.Of("ns/prod")
		return known && len(found) == 0 && changes.Load() == 3
	})
}

// A cluster that was restored from a backup would accept a watch of what is newer than all it
// has. It is connected again, as nothing holds that is known of it.
func TestRecordsOfAFormerTime(t *testing.T) {
	at := func(version, uid string) metav1.PartialObjectMetadata {
		r := recordOf("one", nil)
		r.ResourceVersion, r.UID = version, types.UID(uid)
		return r
	}
	for title, tc := range map[string]struct {
		version  string
		record   metav1.PartialObjectMetadata
		restored bool
	}{
		"a previous resourceVersion":                 {"7", at("5", "a"), true},
		"a previous record, though much was written": {"99", at("5", "a"), true},
		"the same":    {"10", at("10", "a"), false},
		"a later one": {"12", at("11", "a"), false},
		"another record of the name, made much ago": {"12", at("5", "b"), false},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var lists, restored atomic.Int32
			w := NewRecords(multicluster.ClusterName.String, noProofs, func(multicluster.ClusterName) {}, func(multicluster.ClusterName) { restored.Add(1) })
			conn := connection.To(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case watches(r) && lists.Load() == 1:
					_ = writeEvent(w, "MODIFIED", at("10", "a")) // and the watch breaks
				case watches(r):
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				case lists.Add(1) == 1:
					writeListAt(w, "9", "", at("8", "a"))
				default:
					writeListAt(w, tc.version, "", tc.record)
				}
			})
			must.Succeed(t, w.Engage(conn.Context(), "ns/prod", conn))
			if tc.restored {
				eventually(t, "the connection is given up", func() bool { return conn.Context().Err() != nil && restored.Load() == 1 })
				return
			}
			eventually(t, "the records are those of now", func() bool {
				records, known := w.Of("ns/prod")
				return known && records[deliver.Release{Namespace: "apps", Name: "one"}].ResourceVersion == tc.record.ResourceVersion
			})
			if conn.Context().Err() != nil || restored.Load() > 0 {
				t.Error("it was connected again")
			}
		})
	}
}
