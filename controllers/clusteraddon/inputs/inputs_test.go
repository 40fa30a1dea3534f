// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// Values that aren't there are waited for, unless they are optional.
func TestMissingValues(t *testing.T) {
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "v"}}
	for name, objects := range map[string][]client.Object{"no Secret": nil, "no key": {there}} {
		reader := fake.NewClientBuilder().WithObjects(objects...).Build()
		q := layers.Reader{Sources: valuesource.NewReader(reader, reader, nil), Namespace: "team"}
		ref := addonsv1.ValuesReference{Kind: "Secret", Name: "v", Key: "k"}
		of := layers.Layer{Field: "addons[web].valuesFrom[0]", Source: &ref}
		_, _, err := q.Read(t.Context(), of)
		if failed, ok := errors.AsType[*failure.Error](err); !ok || failed.Reason != reasons.ValuesNotFound || reasons.Of(failed.Reason).Phase() != addonsv1.AddonPending || failed.Field != of.Field || !strings.Contains(err.Error(), "Secret team/v") {
			t.Errorf("%s: %v", name, err)
		}
		ref.Optional = ptr.To(true)
		if values, _, err := q.Read(t.Context(), of); values != nil || err != nil {
			t.Errorf("%s, of what is optional: %v, %v", name, values, err)
		}
	}
}

// An optional source of values is missed if it was there at an installation by the same spec.
func TestWhichValuesWereThere(t *testing.T) {
	a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}, Stack: "platform"}
	ref, other := addonsv1.ValuesReference{Kind: "Secret", Name: "values"}, addonsv1.ValuesReference{Kind: "Secret", Name: "other"}
	record := deliver.Summary{Terms: deliver.Terms{Spec: a.SpecDigest(), Optional: stack.ValuesName(other) + "," + stack.ValuesName(ref)}}
	if !inputs.HadValues(record, a, ref) {
		t.Error("it was there")
	}
	if inputs.HadValues(record, a, addonsv1.ValuesReference{Kind: "Secret", Name: "none"}) {
		t.Error("it was never there")
	}
	if record.Spec = "another"; inputs.HadValues(record, a, ref) {
		t.Error("it was there for another spec, which may have had no use for it")
	}
}
