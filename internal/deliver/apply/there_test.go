// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
)

func TestIsThere(t *testing.T) {
	of := schema.GroupResource{Resource: "configmaps"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"another version":          {apierrors.NewConflict(of, "a", errors.New("the object has been modified")), true},
		"a server that asks twice": {apierrors.NewBadRequest("resourceVersion should not be set on objects to be created"), true},
		"invalid":                  {apierrors.NewBadRequest("data: wrong"), false},
		"forbidden":                {apierrors.NewForbidden(of, "a", nil), false},
		"no answer":                {errors.New("connection refused"), false},
	} {
		if apply.IsThere(tc.err) != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
	}
}
