// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// TestParseValuesQuotesNothing has values that YAML reads otherwise than whoever wrote
// them: they may be passwords.
func TestParseValuesQuotesNothing(t *testing.T) {
	r := rendering.NewRenderer(t)
	read := func(text string) error {
		_, err := r.Values(t.Context(), job.Values{Text: []byte(text)})
		return err
	}
	for _, text := range []string{
		"password: *sentinel", "password: !!int sentinel", "password: !!float 'sentinel'", "password: &a *sentinel",
		"sentinel", "- sentinel", `password: "sentinel`, "password: @sentinel", "%sentinel", "a:\n\tsentinel", "password: !!binary sentinel$",
	} {
		err := read(text + "\n")
		if err != nil && strings.Contains(err.Error(), "sentinel") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, says := range map[string]string{
		"a: [1, 2\n": "did not find expected ',' or ']'", "a: {b: 1\n": "did not find expected ',' or '}'",
	} {
		if err := read(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want it to say %q", text, err, says)
		}
	}
	if err := read("password: *sentinel\n"); err == nil {
		t.Error("an alias of nothing is read")
	}
}
