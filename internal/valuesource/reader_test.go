// SPDX-License-Identifier: Apache-2.0

package valuesource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/test/must"
)

// counted counts requests for contents.
type counted struct {
	client.Client
	requests int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, metadata := into.(*metav1.PartialObjectMetadata); !metadata {
		c.requests++
	}
	return c.Client.Get(ctx, key, into, options...)
}

type world struct {
	*valuesource.Reader
	api    *counted
	memory *budget.Budget
}

func newWorld() *world {
	api := &counted{Client: fake.NewClientBuilder().Build()}
	memory := budget.New(budget.Limits{All: 64 << 20, Namespace: 8 << 20})
	return &world{valuesource.NewReader(api, api, memory), api, memory}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: data}
}

// expect reads a key, and expects a text, or that it isn't there, and so many requests in all.
func (w *world) expect(t *testing.T, name, key, want string, found bool, requests int) {
	t.Helper()
	o := reference.Object{Kind: "ConfigMap", Namespace: "team", Name: name, Key: key}
	is, err := w.Value(t.Context(), o)
	if err != nil || string(is.Text) != want || is.IsThere != found || w.api.requests != requests {
		t.Errorf("%s has %+v at %s (%v) after %d requests, want %q (%t) after %d", name, is, key, err, w.api.requests, want, found, requests)
	}
}

// An object is read once for each of the keys that are named, and again when it was changed. Nothing else of it is kept, and
// nothing once it is gone.
func TestNamedKeysAreKept(t *testing.T) {
	w := newWorld()
	large := configMap("v", map[string]string{"a": "1", "b": "2", "other": strings.Repeat("x", 1<<20)})
	must.Succeed(t, w.api.Create(t.Context(), large))
	w.expect(t, "v", "a", "1", true, 1)
	w.expect(t, "v", "a", "1", true, 1)
	w.expect(t, "v", "b", "2", true, 2)
	w.expect(t, "v", "c", "", false, 3)
	for _, key := range []string{"a", "b", "c"} {
		w.expect(t, "v", key, map[string]string{"a": "1", "b": "2"}[key], key != "c", 3)
	}
	if kept := w.memory.Usage().Cached; kept == 0 || kept > 4<<10 {
		t.Errorf("%d bytes are kept", kept)
	}
	large.Data["a"], large.Data["b"] = "3", "4"
	must.Succeed(t, w.api.Update(t.Context(), large))
	w.expect(t, "v", "a", "3", true, 4)
	w.expect(t, "v", "b", "4", true, 5)
	must.Succeed(t, w.api.Delete(t.Context(), large))
	w.expect(t, "v", "a", "", false, 5)
	if kept := w.memory.Usage().Cached; kept != 0 {
		t.Errorf("%d bytes of a deleted object are kept", kept)
	}
}

// What the watch tells of is dropped, as nobody may ask for it any more.
func TestChangedObjectsAreDropped(t *testing.T) {
	w := newWorld()
	must.Succeed(t, w.api.Create(t.Context(), configMap("v", map[string]string{"a": "1"})))
	w.expect(t, "v", "a", "1", true, 1)
	w.Forget("Secret", client.ObjectKey{Namespace: "team", Name: "v"})
	w.expect(t, "v", "a", "1", true, 1)
	w.Forget("ConfigMap", client.ObjectKey{Namespace: "team", Name: "v"})
	if kept := w.memory.Usage().Cached; kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// A tenant makes large ConfigMaps, has them read, and deletes them, without end.
func TestValuesAreBounded(t *testing.T) {
	w := newWorld()
	var most int64
	for i := range 100 {
		is := configMap(fmt.Sprint(i), map[string]string{"a": strings.Repeat("x", 1<<20)})
		must.Succeed(t, w.api.Create(t.Context(), is))
		w.expect(t, is.Name, "a", is.Data["a"], true, i+1)
		must.Succeed(t, w.api.Delete(t.Context(), is))
		most = max(most, w.memory.Usage().Cached)
	}
	if most > 8<<20 || most < 1<<20 {
		t.Errorf("%d KiB are kept", most>>10)
	}
}

// A Secret's values are its bytes. An object without the key isn't one that isn't there.
func TestMissingKeys(t *testing.T) {
	w := newWorld()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "v"}, Data: map[string][]byte{"a": {0, 1}, "empty": {}}}
	must.Succeed(t, w.api.Create(t.Context(), secret))
	for key, want := range map[string][]byte{"a": {0, 1}, "empty": {}, "none": nil} {
		for range 2 { // from the API server, and from memory
			is, err := w.Value(t.Context(), reference.Object{Kind: "Secret", Namespace: "team", Name: "v", Key: key})
			if err != nil || !slices.Equal(is.Text, want) || is.IsThere != (want != nil) || !is.HasObject {
				t.Errorf("%s: %+v, %v", key, is, err)
			}
		}
	}
	if is, err := w.Value(t.Context(), reference.Object{Kind: "Secret", Namespace: "team", Name: "none", Key: "a"}); err != nil || is.HasObject || is.IsThere {
		t.Errorf("of no object: %+v, %v", is, err)
	}
}
