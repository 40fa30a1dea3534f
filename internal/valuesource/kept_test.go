// SPDX-License-Identifier: Apache-2.0

package valuesource_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/test/must"
)

// counter counts what is read.
type counter struct {
	client.Client
	reads int
}

func (c *counter) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Client.Get(ctx, key, o, options...)
}

// TestValuesThatAreKept has many ConfigMaps be read, which have much beside the values or in them, and be deleted.
func TestValuesThatAreKept(t *testing.T) {
	const much = 1 << 16
	for name, tc := range map[string]struct {
		values, junk string
		most         int64
	}{
		"small values beside much": {"a: b", strings.Repeat("x", much), 60_000},
		"large values":             {strings.Repeat("x", much), "", 40 * much},
	} {
		t.Run(name, func(t *testing.T) {
			memory := budget.New(budget.Limits{All: 80 * much, Namespace: 40 * much})
			hub := fake.NewClientBuilder().Build()
			live := &counter{Client: hub}
			r := valuesource.NewReader(hub, live, memory)
			read := func(i int) (valuesource.Value, bool) {
				value, found, err := r.Value(t.Context(), "team", addonsv1.ValuesReference{Kind: "ConfigMap", Name: fmt.Sprint("v", i)})
				must.Succeed(t, err)
				return value, found
			}
			for i := range 100 {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("v", i), UID: types.UID(fmt.Sprint(i))}}
				cm.Data = map[string]string{"values.yaml": tc.values, "junk": tc.junk}
				must.Succeed(t, hub.Create(t.Context(), cm))
				for range 2 {
					if value, found := read(i); !found || !value.IsThere || string(value.Data) != tc.values {
						t.Fatalf("%d: got %d bytes, %v, %v", i, len(value.Data), value.IsThere, found)
					}
				}
			}
			if live.reads != 100 {
				t.Errorf("%d objects are read %d times", 100, live.reads)
			}
			if kept := memory.Usage().Cached; kept == 0 || kept > tc.most {
				t.Errorf("%d bytes are kept", kept)
			}
			for i := range 100 {
				must.Succeed(t, hub.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("v", i)}}))
				if _, found := read(i); found {
					t.Errorf("%d is there", i)
				}
			}
			if usage := memory.Usage(); usage != (budget.Usage{}) {
				t.Errorf("of those that are deleted, %+v is kept", usage)
			}
		})
	}
}
