// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is a reader that fills in what is asked for.
type answers func(into client.Object) error

func (a answers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return a(into)
}

func (answers) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// What was read stays while the Secret can't be read; it is gone when the Secret is.
func TestValueStaysWhileTheSecretCannotBeRead(t *testing.T) {
	var failure error
	reads, version := 0, "1"
	r := newReader(
		answers(func(o client.Object) error { o.SetResourceVersion(version); return nil }),
		answers(func(o client.Object) error {
			reads++
			o.SetResourceVersion(version)
			o.(*corev1.Secret).Data = map[string][]byte{"value": []byte("of version " + version)}
			return failure
		}),
	)
	cluster, secret := types.NamespacedName{Namespace: "a", Name: "b"}, types.NamespacedName{Namespace: "a", Name: "b-kubeconfig"}
	secrets := schema.GroupResource{Resource: "secrets"}
	for i, step := range []struct {
		version string
		failure error
		expire  bool
		data    string
		problem string
		reads   int
	}{
		{"1", nil, false, "of version 1", "", 1},
		{"1", nil, false, "of version 1", "", 1},
		{"1", nil, true, "of version 1", "", 2},
		{"2", apierrors.NewForbidden(secrets, "b-kubeconfig", nil), false, "of version 1", "can't be read (Forbidden)", 3},
		{"2", nil, false, "of version 2", "", 4},
		{"3", apierrors.NewNotFound(secrets, "b-kubeconfig"), false, "", "", 5},
	} {
		version, failure = step.version, step.failure
		if step.expire {
			r.expire(cluster)
		}
		value, err := r.Read(t.Context(), cluster, secret, "value")
		if (err != nil) != (step.problem != "") || string(value.Data) != step.data || value.Problem != step.problem || reads != step.reads {
			t.Errorf("step %d: %q, %q, %v after %d reads", i, value.Data, value.Problem, err, reads)
		}
	}
}
