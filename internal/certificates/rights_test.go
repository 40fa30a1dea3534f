// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/certificates"
)

// policyName is that of config/rbac/webhooks.
const policyName = "chandler-webhook-certificates"

// Whoever has the account's token can't have the API server send him more than it sends
// to the webhooks. TestRotation and TestRepair show that it can do its work.
func TestTheAccountChangesNothingButBundles(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	account, err := client.New(w.config, client.Options{Scheme: w.client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: certificates.MutatingConfigurationName}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: certificates.ConfigurationName}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	patch := func(ctx context.Context, object client.Object, kind types.PatchType, patch string) error {
		return account.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(kind, []byte(patch)))
	}
	refused := func(err error) bool { return apierrors.IsForbidden(err) && strings.Contains(err.Error(), policyName) }
	g.Eventually(func() bool {
		return refused(account.Patch(t.Context(), mutating.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0"}]`)), client.DryRunAll))
	}, patience, 100*time.Millisecond).Should(BeTrue(), "the API server has noticed the policy")

	const everything = `[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*/*"]}]`
	for name, tc := range map[string]struct {
		object client.Object
		patch  string
	}{
		"rules":                     {mutating, `[{"op":"replace","path":"/webhooks/0/rules","value":` + everything + `}]`},
		"rules of validation":       {validating, `[{"op":"replace","path":"/webhooks/1/rules","value":` + everything + `}]`},
		"one more webhook":          {mutating, `[{"op":"copy","from":"/webhooks/0","path":"/webhooks/-"},{"op":"replace","path":"/webhooks/1/name","value":"x.example.org"}]`},
		"an address":                {mutating, `[{"op":"remove","path":"/webhooks/0/clientConfig/service"},{"op":"add","path":"/webhooks/0/clientConfig/url","value":"https://example.org/"}]`},
		"another Service":           {validating, `[{"op":"replace","path":"/webhooks/0/clientConfig/service/namespace","value":"default"}]`},
		"another path":              {validating, `[{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/other"}]`},
		"what a failure means":      {validating, `[{"op":"replace","path":"/webhooks/1/failurePolicy","value":"Ignore"}]`},
		"a condition":               {validating, `[{"op":"add","path":"/webhooks/1/matchConditions","value":[{"name":"never","expression":"false"}]}]`},
		"an owner":                  {mutating, `[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"1"}]}]`},
		"a label":                   {mutating, `[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]`},
		"an annotation":             {crd, `[{"op":"add","path":"/metadata/annotations/cert-manager.io~1inject-ca-from","value":"default/any"}]`},
		"the CRD's schema":          {crd, `[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/required","value":["spec"]}]`},
		"where conversion is":       {crd, `[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/service"},{"op":"add","path":"/spec/conversion/webhook/clientConfig/url","value":"https://example.org/"}]`},
		"whether there is any":      {crd, `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`},
		"the Service that converts": {crd, `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/service/name","value":"other"}]`},
	} {
		if err := patch(t.Context(), tc.object, types.JSONPatchType, tc.patch); !refused(err) {
			t.Errorf("%s: the patch gives %v; want the policy's refusal", name, err)
		}
	}

	t.Run("what it needs is allowed", func(t *testing.T) {
		w.balance(w.startReplica())
		NewWithT(t).Eventually(w.ask, patience, 100*time.Millisecond).Should(Succeed())
		note := `{"metadata":{"annotations":{"crd-migration.cluster.x-k8s.io/observed-generation":"1"}}}`
		if err := patch(t.Context(), crd, types.MergePatchType, note); err != nil {
			t.Errorf("the migration of stored versions can't take its note: %v", err)
		}
	})
}
