// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestLenientTemplateThatDiffersEachTimeIsRefused leaves what is installed as it is.
func TestLenientTemplateThatDiffersEachTimeIsRefused(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	lenient := func(a *addonsv1.Addon) { a.ValuesTemplateMode = addonsv1.ValuesTemplateModeLenient }
	stack := tn.makeStack("platform", nil, tn.small("settings", withTemplate("text: first\ntext: last\n"), lenient))
	tn.awaitReady("platform", "installed")
	settings := tn.configMapOf("settings")
	must.Succeed(t, s.Get(t.Context(), tn.key("settings"), settings))
	NewWithT(t).Expect(settings.Data).To(HaveKeyWithValue("text", "last"), "of equal keys the last one counts, as for the Helm add-on provider")
	change(tn, stack, func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0] = tn.small("settings", withTemplate("text: '{{ randAlphaNum 8 }}'\n"), lenient)
	})
	tn.awaitCluster("prod", "it says what is wrong", phase("settings", addonsv1.AddonFailed, job.ReasonTemplateNotRepeatable, "addons[settings].valuesTemplate"))
	tn.poke("prod", "1")
	tn.settle()
	NewWithT(t).Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))
}

// TestChartWhoseSchemaRefersToTheWeb is installed once its user does without the schema, at once, and
// an upgrade isn't made for that alone.
func TestChartWhoseSchemaRefersToTheWeb(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	path := tn.writeChart("settings", "1.0.0", chart{
		"values.schema.json":  `{"properties": {"text": {"$ref": "https://example.com/definitions.json#/text"}}}`,
		"templates/text.yaml": configMap("settings", "{{ .Values.text | quote }}"),
	})
	text := withValues(map[string]any{"text": "some"})
	stack := tn.makeStack("platform", nil, tn.addon("settings", path, text))
	tn.awaitCluster("prod", "the field is named", phase("settings", addonsv1.AddonFailed, "ChartInvalid", "skipSchemaValidation"))
	change(tn, stack, func(s *addonsv1.AddonStack) { s.Spec.Addons[0].SkipSchemaValidation = ptr.To(true) })
	tn.awaitReady("platform", "installed")
	tn.settle()
	if revision := s.release(t, tn.namespace, "settings").revision; revision != 1 {
		t.Errorf("it is revision %d", revision)
	}
}
