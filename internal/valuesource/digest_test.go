// SPDX-License-Identifier: Apache-2.0

package valuesource_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// The digest of a Secret depends on what nobody knows who can't read it. A ConfigMap has the same digest everywhere.
func TestDigest(t *testing.T) {
	digest := func(ref addonsv1.ValuesReference, uid, text string) string {
		t.Helper()
		meta := metav1.ObjectMeta{Namespace: "team", Name: "db", UID: types.UID(uid)}
		reader := fake.NewClientBuilder().WithObjects(
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"values.yaml": []byte(text)}},
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"values.yaml": text}},
		).Build()
		r := valuesource.NewReader(reader, reader, nil)
		cached, err := r.Digest(t.Context(), "team", ref)
		if now, also := r.DigestNow(t.Context(), "team", ref); err != nil || also != nil || now != cached {
			t.Errorf("%q and %q, %v, %v", cached, now, err, also)
		}
		return cached
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		ref := addonsv1.ValuesReference{Kind: kind, Name: "db"}
		if named, ok := stack.ValuesNamed(stack.ValuesName(ref)); !ok || stack.ValuesName(named) != kind+"/db/values.yaml" {
			t.Errorf("got %+v", named)
		}
		one := digest(ref, "1", "a")
		if len(one) != 32 || digest(ref, "1", "a") != one || digest(ref, "1", "b") == one {
			t.Errorf("%s: it isn't the digest of the values", kind)
		}
		if same := digest(ref, "2", "a") == one; same != (kind == "ConfigMap") {
			t.Errorf("%s with another UID: the same %t", kind, same)
		}
		missing := ref
		missing.Key = "other"
		if got := digest(missing, "1", "a"); got != "" {
			t.Errorf("got %q", got)
		}
		missing.Name = "none"
		if got := digest(missing, "1", "a"); got != "" {
			t.Errorf("got %q", got)
		}
	}
}
