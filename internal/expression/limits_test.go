// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/must"
)

const sentinel = "aHVudGVyMi1pcy1zZWNyZXQ="

func secret() map[string]any {
	return map[string]any{"s": map[string]any{"data": map[string]any{"password": sentinel}}}
}

func about(text string) *addonsv1.ObjectsCondition {
	return &addonsv1.ObjectsCondition{Expression: text, Objects: []addonsv1.ConditionObject{{Key: "s"}}}
}

func TestErrorsQuoteNoValues(t *testing.T) {
	for _, text := range []string{
		"timestamp(s.data.password).getFullYear() > 0", "url(s.data.password).getHost() == ''", "s[s.data.password] == 1", "int(s.data.password) > 0", "duration(s.data.password) == null",
		"quantity(s.data.password).isInteger()", "semver(s.data.password).major() > 0", "bool(s.data.password)", "s.data.password", "[true][s.data.password]", "{s.data.password: 1}['a'] == 1",
		"timestamp(0).getHours(s.data.password) == 1", "s.data.password + 1 == 2",
	} {
		program, err := expression.Of(about(text))
		if err != nil {
			t.Errorf("%s isn't compiled: %v", text, err)
			continue
		}
		held, err := program.Holds(t.Context(), secret())
		if held || err == nil || strings.Contains(err.Error(), sentinel[:8]) {
			t.Errorf("%s: %t, %v; want an error without the value", text, held, err)
		}
	}
}

func TestFunctionsThatAreOffered(t *testing.T) {
	objects := map[string]any{"s": map[string]any{"metadata": map[string]any{"name": "web-1", "labels": map[string]any{"a": "b"}}, "spec": map[string]any{
		"image": "registry.example/web:v1.2.3", "list": []any{int64(1), int64(2)}, "memory": "64Mi"}, "status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}, "time": "2026-01-01T00:00:00Z"}}}
	for _, text := range []string{
		"s.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", "has(s.metadata.labels) && !has(s.spec.missing)", "s.spec.image.matches('^registry[.]example/.*:v1[.]')",
		"matches(s.metadata.name, 'web-[0-9]+')", "s.spec.image.find('v[0-9.]+') == 'v1.2.3'", "s.spec.image.findAll('[0-9]').size() == 3", "s.spec.image.findAll('[0-9]', 1) == ['1']",
		"s.metadata.name.split('-')[1] == '1'", "s.metadata.name.startsWith('web') && s.metadata.name.substring(4) == '1'", "s.?spec.?missing.orValue(3) == 3", "s.spec.list.sum() == 3 && s.spec.list.max() == 2",
		"quantity(s.spec.memory).isGreaterThan(quantity('1e3')) && isQuantity('1Gi')", "semver('1.2.3').major() == 1", "timestamp(s.status.time) < timestamp('2027-01-01T00:00:00Z')", "s.spec.list.map(x, x * 2) == [2, 4]",
		"optional.of(s.spec.image).optMap(x, x.endsWith('v1.2.3')).orValue(false)", "url('https://a.example/b').getHost() == 'a.example'", "'a' in s.metadata.labels", "s.metadata.name.lowerAscii() + '!' == 'web-1!'",
	} {
		program, err := expression.Of(about(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if held, err := program.Holds(t.Context(), objects); err != nil || !held {
			t.Errorf("%s: %t, %v", text, held, err)
		}
	}
}

func TestFunctionsThatAreNotOffered(t *testing.T) {
	for text, named := range map[string]string{
		"s.name.replace('a', 'b') == ''":                           "replace",
		"s.list.join(',') == ''":                                   "join",
		"'%s'.format([s.name]) == ''":                              "format",
		"s.name.matches(s.pattern)":                                "matches",
		"matches('a', s.pattern)":                                  "matches",
		"s.name.find('a' + 'b') == ''":                             "find",
		"s.name.matches('(a{100}){5}(b{100})')":                    "matches",
		"s.name.matches('" + strings.Repeat("a", 300) + "')":       "matches",
		"google.protobuf.Struct{fields: {}} == s":                  "google.protobuf.Struct",
		"s" + strings.Repeat(".a", 40) + " == 1":                   "depth",
		strings.Repeat("[", 40) + strings.Repeat("]", 40) + "== s": "recursion",
		"s == [" + strings.Repeat("1,", 400) + "1]":                "words and signs",
	} {
		_, err := expression.Of(about(text))
		if err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v; want an error that names %s", text, err, named)
		}
		if again := expression.Check(about(text)); again == nil || err == nil || again.Error() != err.Error() {
			t.Errorf("%s: at another look %v", text, again)
		}
	}
}

func TestManyExpressionsAreCompiledOnce(t *testing.T) {
	look := func() {
		for i := range 3000 {
			must.Succeed(t, expression.Check(about(fmt.Sprintf("s.status.replicas == %d", i))))
		}
	}
	first := cost.Quick(look).Allocated
	if second := cost.Quick(look).Allocated; second > first/10 {
		t.Errorf("another look takes %d KiB of memory, the first one %d KiB", second>>10, first>>10)
	}
	if again := cost.Quick(func() { _, _ = expression.Of(about("s.status.replicas == 0")) }).Allocated; again < 16<<10 {
		t.Errorf("of 3000 programs none was dropped: the first one takes %d KiB again", again>>10)
	}
}

func TestEvaluationEndsWithItsCaller(t *testing.T) {
	program, err := expression.Of(about(nested(4, "all", "s.data.password != ''")))
	must.Succeed(t, err)
	if held, err := program.Holds(t.Context(), secret()); err != nil && !strings.Contains(err.Error(), "steps") {
		t.Fatalf("%t, %v", held, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if held, err := program.Holds(ended, secret()); held || err == nil {
		t.Errorf("after its caller has ended: %t, %v", held, err)
	}
}

func TestTogether(t *testing.T) {
	many := func(times int, text string) (all []string) {
		for range times {
			all = append(all, text)
		}
		return all
	}
	for name, c := range map[string]struct {
		expressions []string
		refused     string
	}{
		"none":                       {},
		"64 add-ons with a few each": {expressions: many(250, "self.status.readyReplicas >= 1")},
		"conditions of many objects": {expressions: many(64, "s.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')")},
		"too many":                   {many(257, "true"), "257 expressions"},
		"too long":                   {many(17, strings.Repeat("a", 4096)), "bytes"},
		"too many words":             {many(40, strings.Repeat("a&&", 50)+"a"), "words and signs"},
		"macros":                     {many(20, strings.Repeat("a.all(x,x)&&", 15)+"a"), "words and signs"},
	} {
		switch refused := expression.CheckTogether(c.expressions); {
		case c.refused == "" && refused != "":
			t.Errorf("%s: %s", name, refused)
		case c.refused != "" && !strings.Contains(refused, c.refused):
			t.Errorf("%s: %q; want %s", name, refused, c.refused)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, text := range costlyExpressions() {
		f.Add(text)
	}
	for _, text := range []string{"timestamp(s.data.password) == null", "s.data.exists(k, k == 'password')", "s[s.data.password]", `s.data.password.matches('(a|b)*')`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || expression.CheckTogether([]string{text}) != "" { // as the API server and admission refuse
			t.Skip()
		}
		spent := cost.Quick(func() {
			program, err := expression.Of(about(text))
			if err != nil {
				return
			}
			if _, err := program.Holds(t.Context(), secret()); err != nil && strings.Contains(err.Error(), sentinel) {
				t.Errorf("the error of %q quotes a value: %v", text, err)
			}
		})
		expectBounded(t, spent, text)
	})
}
