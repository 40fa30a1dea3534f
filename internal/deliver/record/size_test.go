// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/held"
	"github.com/cluster-chandler/chandler/test/must"
)

// counted is what stores hold at present, and held at most.
type counted struct{ now, most int64 }

func (c *counted) hold(_ context.Context, bytes int64) error {
	c.now += bytes
	c.most = max(c.most, c.now)
	return nil
}

// TestSizeCountsAllOfARecord has a record take much memory by each of its fields, as it is written and as it is read.
func TestSizeCountsAllOfARecord(t *testing.T) {
	const much = 400_000
	text := strings.Repeat("x", much)
	empties := make([]any, much/64)
	for i := range empties {
		empties[i] = map[string]any{}
	}
	for name, fill := range map[string]func(r *record.Record){
		"manifest":          func(r *record.Record) { r.Helm.Manifest = text },
		"hooks":             func(r *record.Record) { r.Helm.Hooks = []*helmrelease.Hook{{Manifest: text}} },
		"values":            func(r *record.Record) { r.Helm.Config = map[string]any{"text": text} },
		"many small values": func(r *record.Record) { r.Helm.Config = map[string]any{"list": empties} },
		"notes":             func(r *record.Record) { r.Helm.Info.Notes = text },
		"CRDs": func(r *record.Record) {
			r.CRDs = []*unstructured.Unstructured{{Object: map[string]any{"kind": "A", "apiVersion": "v1", "text": text}}}
		},
		"generated values":   func(r *record.Record) { r.State.Generated = map[string]string{"password": text} },
		"sensitive values":   func(r *record.Record) { r.State.Sensitive = []string{text} },
		"notes of a removal": func(r *record.Record) { r.State.Notes = []string{text} },
	} {
		t.Run(name, func(t *testing.T) {
			r := &record.Record{
				Summary: record.Summary{Release: record.Release{Namespace: "ns", Name: "demo"}, Revision: 1, Status: "deployed", Digest: "sha256:1", Owner: "fleet/a"},
				Helm:    &helmrelease.Release{Name: "demo", Namespace: "ns", Version: 1, Info: &helmrelease.Info{Status: "deployed"}},
				State:   &record.State{Format: 1},
			}
			fill(r)
			r.Seal("salt")
			c := fake.NewClientBuilder().Build()
			var writes, reads counted
			writer := &record.Store{Client: c, Writer: uniquely{c}, Release: r.Release, Clock: clock.RealClock{}, Hold: writes.hold}
			must.Succeed(t, writer.Create(t.Context(), r))
			must.Succeed(t, writer.Update(t.Context(), r))
			if size := writer.Size(); size < much || size > 2*much || writes.now != size {
				t.Errorf("a record that was written has %d bytes, and %d are held", size, writes.now)
			}
			reader := &record.Store{Client: c, Writer: uniquely{c}, Release: r.Release, Clock: clock.RealClock{}, Hold: reads.hold}
			is := newest(t, reader)
			if is == nil || reader.Size() != writer.Size() || reads.now != reader.Size() {
				t.Fatalf("when it is read it has %d bytes, not %d, and %d are held", reader.Size(), writer.Size(), reads.now)
			}
			if reads.most != 3*reader.Size() {
				t.Errorf("at most %d are held while it is read", reads.most)
			}
			must.Succeed(t, reader.SetStatus(t.Context(), is.Summary, "superseded", ""))
			must.Equal(t, reader.Size(), reads.now, "held after its status was changed")
			var others counted
			other := &record.Store{Client: c, Writer: c, Release: r.Release, Clock: clock.RealClock{}, Hold: others.hold}
			summaries, err := other.List(t.Context())
			must.Succeed(t, err)
			must.Succeed(t, other.SetStatus(t.Context(), summaries[0], "failed", ""))
			must.Equal(t, 0, others.now, "held by a store that hadn't read it")
		})
	}
}

// TestSizeOfOldRecords has a record as very old versions of Helm wrote them, without compression.
func TestSizeOfOldRecords(t *testing.T) {
	text := `{"manifest":"` + strings.Repeat("x", 100_000) + `"}`
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sh.helm.release.v1.demo.v1", Labels: map[string]string{"owner": "helm", "name": "demo", "version": "1", "status": "deployed"}},
		Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(text)))},
	}
	store := &record.Store{Client: fake.NewClientBuilder().WithObjects(secret).Build(), Release: record.Release{Namespace: "ns", Name: "demo"}}
	records, err := store.List(t.Context())
	must.Succeed(t, err)
	_, err = store.Load(t.Context(), records[0])
	must.Succeed(t, err)
	if size := store.Size(); size < int64(len(text)) {
		t.Errorf("%d bytes are counted for %d", size, len(text))
	}
}

// TestRecordWaitsForMemory has no record read or written for which there is no memory.
func TestRecordWaitsForMemory(t *testing.T) {
	errFull := errors.New("full")
	c := fake.NewClientBuilder().Build()
	release := record.Release{Namespace: "ns", Name: "demo"}
	full := &record.Store{Client: c, Writer: uniquely{c}, Release: release, Clock: clock.RealClock{}, Hold: func(context.Context, int64) error { return errFull }}
	r := &record.Record{
		Summary: record.Summary{Release: release, Revision: 1, Status: "deployed", Digest: "sha256:1", Owner: "fleet/a"},
		Helm:    &helmrelease.Release{Name: "demo", Namespace: "ns", Version: 1, Info: &helmrelease.Info{}}, State: &record.State{Format: 1},
	}
	if err := full.Create(t.Context(), r); !errors.Is(err, errFull) {
		t.Errorf("creating it: %v", err)
	}
	free := &record.Store{Client: c, Writer: uniquely{c}, Release: release, Clock: clock.RealClock{}}
	if is, err := free.Newest(t.Context()); is != nil || err != nil {
		t.Errorf("there is %v, %v", is, err)
	}
	must.Succeed(t, free.Create(t.Context(), r))
	if _, err := full.Newest(t.Context()); !errors.Is(err, errFull) || record.IsUnreadable(err) {
		t.Errorf("reading it: %v", err)
	}
	if err := full.SetStatus(t.Context(), r.Summary, "superseded", ""); !errors.Is(err, errFull) {
		t.Errorf("changing its status: %v", err)
	}
	if full.Size() != 0 {
		t.Errorf("%d bytes of it are kept", full.Size())
	}
}

// uniquely gives objects UIDs, as API servers do.
type uniquely struct{ client.Client }

func (c uniquely) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	o.SetUID("1")
	return c.Client.Create(ctx, o, options...)
}

func newest(t *testing.T, s *record.Store) *record.Record {
	t.Helper()
	r, err := s.Newest(t.Context())
	must.Succeed(t, err)
	return r
}

// TestListsCount sees that a list of records counts until what is needed of it was taken.
func TestListsCount(t *testing.T) {
	arrive := held.Answers(t)
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			arrive(ctx)
			return c.List(ctx, list, o...)
		},
	}).Build()
	_, err := (&record.Store{Client: c, Release: record.Release{Namespace: "ns", Name: "demo"}, Clock: clock.RealClock{}}).List(t.Context())
	must.Succeed(t, err)
}
