// SPDX-License-Identifier: Apache-2.0

package observed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestFollow changes a stack and a cluster, each after the change before was told.
func TestFollow(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	of := metav1.ObjectMeta{Namespace: "team", Name: "one"}
	looks, done := 0, errors.New("done")
	err := observed.Follow(t.Context(), c, "team", time.Millisecond, func() error {
		switch looks++; looks {
		case 1:
			go func() { // the watches may not have begun
				for ; t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
					_ = c.Delete(t.Context(), &addonsv1.AddonStack{ObjectMeta: of})
					_ = c.Create(t.Context(), &addonsv1.AddonStack{ObjectMeta: of})
				}
			}()
			return nil
		case 2:
			return nil
		}
		return done
	})
	if !errors.Is(err, done) || looks != 3 {
		t.Errorf("%d looks: %v", looks, err)
	}
	ended, end := context.WithCancel(t.Context())
	err = observed.Follow(ended, c, "team", time.Millisecond, func() error { end(); return nil })
	must.Succeed(t, err)
}
