// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
	"testing"
)

// TestHidingIsBounded looks for many secrets in large texts, and for such as have hundreds
// of escaped forms. Work is counted: it ends where it should, and what wasn't looked through
// to its end isn't shown.
func TestHidingIsBounded(t *testing.T) {
	plain, brackets := make([]string, 20_000), make([]string, 5_000)
	for i := range plain {
		plain[i] = fmt.Sprintf("s3cret-%d", i)
	}
	for i := range brackets {
		brackets[i] = fmt.Sprintf(`<"&' %d\%%>`, i)
	}
	digits := strings.Repeat("0123456789", 10_000)
	for name, c := range map[string]struct {
		secrets []string
		text    string
		hidden  bool
	}{
		"many secrets, a message as they are": {plain, "field is immutable: s3cret-17 isn't valid", false},
		"many secrets, a very large text":     {plain, strings.Repeat("no ", 1<<20/3), true},
		"many forms":                          {brackets, digits, true},
		"many cuts":                           {plain, strings.Repeat("s3cret-"+gap, 10_000), true},
		"a large secret":                      {[]string{strings.Repeat("x<", 1<<20)}, strings.Repeat("y", 1<<20), false},
		"a secret of brackets":                {[]string{strings.Repeat("<", 1<<20)}, strings.Repeat("<", 1<<20) + "!", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewRedactor(c.secrets)
			text := s.Redact(c.text)
			if (text == Redacted) != c.hidden {
				t.Errorf("hidden is %t, expected %t: %.50s", text == Redacted, c.hidden, text)
			}
			if strings.Contains(text, "s3cret") || strings.Contains(text, "<") {
				t.Errorf("a secret is left: %.50s", text)
			}
			if over := -s.left.Load(); over > int64(64*(len(c.text)+1<<10)) {
				t.Errorf("it went on for %d bytes after the end", over)
			}
			if c.hidden && s.Redact("any other text") != Redacted {
				t.Error("what isn't looked through is shown")
			}
		})
	}
}

func BenchmarkHide(b *testing.B) {
	secrets := make([]string, 1000)
	for i := range secrets {
		secrets[i] = fmt.Sprintf("s3cret-%d", i)
	}
	text := strings.Repeat("spec.replicas: Invalid value. ", 10)
	for b.Loop() {
		Redact(text, secrets)
	}
}
