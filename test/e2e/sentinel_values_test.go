// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// misfortune is a chart that fails because of a value from a Secret, in a way that
// invites somebody to quote the value.
type misfortune struct {
	chart  chart
	reason string // "" for Ready
}

// secretOf is the manifest of a Secret.
func secretOf(name, fields string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n" + fields + "\n"
}

// templated is a chart with one template.
func templated(text string) chart { return chart{"templates/object.yaml": text} }

// checked is a chart whose values have a schema.
func checked(schema string) chart {
	c := templated(configMap("checked", "x"))
	c["values.schema.json"] = `{"type": "object", "properties": {"password": ` + schema + `}}`
	return c
}

// misfortunes have .Values.password, which is secret, and .Values.nested.list with
// another one; a chart has the same name as its objects where a policy refuses them.
func misfortunes() map[string]misfortune {
	all := map[string]misfortune{
		"in-secrets":   {templated(secretOf("in-secrets", "stringData: {password: {{ .Values.password | quote }}}\ndata: {encoded: {{ index .Values.nested.list 0 | b64enc }}}")), ""},
		"in-configmap": {templated(configMap("in-configmap", "{{ .Values.password | quote }}")), ""},
		"warned-about": {templated(configMap("warned-about", "{{ .Values.password | quote }}")), ""},

		// The API server, and policies, quote what they refuse.
		"refused-configmap": {templated(configMap("refused-configmap", "{{ .Values.password | quote }}")), "Forbidden|ObjectRejected"},
		"refused-encoded":   {templated(configMap("refused-encoded", "{{ .Values.password | b64enc }}")), "Forbidden|ObjectRejected"},
		"refused-secret":    {templated(secretOf("refused-secret", "data: {text: {{ .Values.password | b64enc }}}")), "Forbidden|ObjectRejected"},
		"wrong-label":       {templated("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong-label, labels: {password: {{ .Values.password | quote }}}}\n"), "ObjectRejected"},
		"wrong-field":       {templated("apiVersion: v1\nkind: Service\nmetadata: {name: wrong-field}\nspec: {clusterIP: {{ .Values.password | quote }}, ports: [{port: 80}]}\n"), "ObjectRejected"},
		"wrong-type":        {templated("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong-type}\ndata: {{ .Values.password | quote }}\n"), "ObjectRejected"},
		"wrong-number":      {templated("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong-number}\ndata: {pin: {{ .Values.pin | int64 }}}\n"), "ObjectRejected"},
		"wrong-secret":      {templated(secretOf("wrong-secret", "data: {password: {{ .Values.password | quote }}}")), "ObjectRejected"},
		"wrong-hook": {templated("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong-hook, labels: {password: {{ .Values.password | quote }}}, " +
			"annotations: {helm.sh/hook: pre-install}}\n"), "HookFailed|EmptyRendering"},

		// Schemas.
		"schema-pattern": {checked(`{"type": "string", "pattern": "^[a-z]{4}$"}`), "SchemaViolation"},
		"schema-type":    {checked(`{"type": "integer"}`), "SchemaViolation"},
		"schema-format":  {checked(`{"type": "string", "format": "ipv4"}`), ""},
		"schema-enum":    {checked(`{"enum": ["a", "b"]}`), "SchemaViolation"},
		"schema-const":   {checked(`{"const": "a"}`), "SchemaViolation"},
		"schema-length":  {checked(`{"maxLength": 3}`), "SchemaViolation"},
		"schema-not":     {checked(`{"not": {"type": "string"}}`), "SchemaViolation"},
		"schema-one":     {checked(`{"oneOf": [{"type": "string"}, {"minLength": 1}]}`), "SchemaViolation"},

		// What a template makes isn't YAML, or no object.
		"no-yaml":   {templated("{{ .Values.password }}: [a\n{{ .Values.password }}: b: c"), "ManifestInvalid|TemplateFailed"},
		"no-object": {templated("{{ .Values.password | quote }}"), "ManifestInvalid|TemplateFailed"},
		"no-anchor": {templated("a: *{{ .Values.word }}"), "ManifestInvalid|TemplateFailed"},
		"no-tag":    {templated("a: !!int {{ .Values.word }}"), "ManifestInvalid|TemplateFailed"},
		"twice":     {templated("{{ .Values.word }}: a\n{{ .Values.word }}: b"), "ManifestInvalid|TemplateFailed"},
	}
	// Functions that say what they were given.
	for name, call := range map[string]string{
		"fail":         `fail .Values.password`,
		"fail-list":    `fail (index .Values.nested.list 0)`,
		"fail-encoded": `fail (b64enc .Values.password)`,
		"fail-header":  `fail (printf "Authorization: Basic %s" (printf "me:%s" .Values.password | b64enc))`,
		"fail-quoted":  `fail (printf "%q" .Values.password)`,
		"fail-json":    `fail (toJson .Values)`,
		"fail-yaml":    `fail (toYaml .Values)`,
		"fail-url":     `fail (urlquery .Values.password)`,
		"fail-hex":     `fail (printf "%x" .Values.password)`,
		"fail-html":    `fail (html .Values.password)`,
		"fail-number":  `fail (printf "%d" (int64 .Values.pin))`,
		"fail-values":  `fail (printf "%v" .Values)`,
		"include":      `include .Values.password .`,
		"tpl-broken":   `tpl (printf "{{ %s" .Values.password) .`,
		"semver":       `semver .Values.password`,
		"regex":        `mustRegexMatch (printf "[%s" .Values.password) "x"`,
		"url":          `urlParse (printf "https://[%s" .Values.password)`,
		"date":         `mustToDate "2006-01-02" .Values.password`,
		"json":         `mustFromJson .Values.password`,
		"index":        `index .Values.password "x"`,
		"field":        `.Values.password.field`,
		"atoi":         `mustDateModify .Values.password now`,
		"template":     `template "none" .Values.password`,
		"certificate":  `genCAWithKey "ca" 1 .Values.password`,
		"required":     `required .Values.password .Values.none`,
		"get":          `get .Values.password "x"`,
	} {
		all["calls-"+name] = misfortune{templated(configMap("called", "{{ "+call+" }}")), "TemplateFailed"}
	}
	return all
}

// fromSecret makes the values of an add-on come from a Secret of its own.
func (ss sentinels) fromSecret(tn *tenant, name string) func(*addonsv1.Addon) {
	pin := ss.note("the number of "+name, "9"+strings.Repeat("0", 2)+fmt.Sprint(len(ss)+1000000000000))
	values, err := yaml.Marshal(map[string]any{
		"password": ss.plant("a value of " + name), "word": ss.plantPlain("a word of " + name),
		"nested": map[string]any{"list": []string{ss.plant("a listed value of " + name)}},
	})
	must.Succeed(tn.t, err)
	tn.create(tn.secret(name, map[string]string{"values.yaml": string(values) + "pin: " + pin + "\n"}))
	return valuesFromSecrets(name)
}

// unreadableValues are add-ons with values in Secrets that can't be read.
func (ss sentinels) unreadableValues(tn *tenant, chart string) []addonsv1.Addon {
	var addons []addonsv1.Addon
	for name, text := range map[string]string{
		"values-anchor":  "password: *" + ss.plantPlain("an anchor"),
		"values-tag":     "password: !!int " + ss.plantPlain("a tagged value"),
		"values-float":   "password: !!float '" + ss.plantPlain("a tagged string") + "'",
		"values-twice":   "password: " + ss.plantPlain("the first of two") + "\npassword: " + ss.plantPlain("the second of two"),
		"values-scalar":  ss.plantPlain("no map"),
		"values-open":    `password: "` + ss.plantPlain("an open string"),
		"values-percent": "%" + ss.plantPlain("a directive"),
		"values-tab":     "a:\n\t" + ss.plantPlain("a tab"),
		"values-at":      "password: @" + ss.plantPlain("a reserved character"),
		"values-binary":  "password: !!binary " + ss.plantPlain("binary") + "$",
		"values-list":    "- " + ss.plantPlain("a list"),
	} {
		tn.create(tn.secret(name, map[string]string{"values.yaml": text + "\n"}))
		addons = append(addons, tn.addon(name, chart, valuesFromSecrets(name)))
	}
	return addons
}

// quote makes the API server say what is in some objects of a namespace: when it
// refuses them, and as a warning.
func (s *server) quote(t *testing.T, namespace, resource string, action admissionv1.ValidationAction, expression string, names ...string) {
	t.Helper()
	s.createNamespace(t, namespace)
	var quotedNames []string
	for _, name := range names {
		quotedNames = append(quotedNames, quoted(name))
	}
	s.evaluate(t, strings.ToLower(fmt.Sprintf("quote-%s-%s-%s", action, names[0], namespace)), namespace, coreResource(resource), action, admissionv1.Validation{
		Expression: "!(object.metadata.name in [" + strings.Join(quotedNames, ", ") + "])", MessageExpression: expression,
	})
}

func coreResource(resource string) admissionv1.Rule {
	return admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}
}

// evaluate has a policy evaluate what is made and changed in a namespace. It returns what puts the policy in force.
func (s *server) evaluate(t *testing.T, name, namespace string, of admissionv1.Rule, action admissionv1.ValidationAction, by admissionv1.Validation) client.Object {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			MatchPolicy:       new(admissionv1.Equivalent),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels(corev1.LabelMetadataName + "=" + namespace)},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, Rule: of,
			}}},
		},
		Validations: []admissionv1.Validation{by},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{action}}
	must.Succeed(t, s.Create(t.Context(), policy))
	must.Succeed(t, s.Create(t.Context(), binding))
	return binding
}

// awaitRefusal waits until a policy is in force that refuses an object.
func (s *server) awaitRefusal(t *testing.T, refused client.Object) {
	t.Helper()
	poll(t, patience, "the API server is to enforce the policy", func() error {
		if s.Create(t.Context(), refused.DeepCopyObject().(client.Object), client.DryRunAll) == nil {
			return fmt.Errorf("it lets %s through", refused.GetName())
		}
		return nil
	})
}
