// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/test/cost"
)

// TestHidingIsBounded looks for many secrets in large texts, and for some that overlap with a text in many ways. Where that
// would take too long, nothing of the text is shown.
func TestHidingIsBounded(t *testing.T) {
	const gap = " ... " // of Shorten
	plain, brackets := make([]string, 20_000), make([]string, 5_000)
	for i := range plain {
		plain[i] = fmt.Sprintf("s3cret-%d", i)
	}
	for i := range brackets {
		brackets[i] = fmt.Sprintf(`<"&' %d\%%>`, i)
	}
	digits := strings.Repeat("0123456789", 10_000)
	long := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		secrets []string
		text    string
		hidden  bool
	}{
		"many secrets, a message as they are":    {plain, "field is immutable: s3cret-17 isn't valid", false},
		"many secrets, a very large text":        {plain, strings.Repeat("no ", 1<<20/3), true},
		"many secrets that are escaped":          {brackets, digits[:10_000], false},
		"many secrets that are escaped, at most": {brackets, digits, true},
		"many cuts":                              {plain, strings.Repeat("s3cret-"+gap, 10_000), true},
		"as many cuts as are looked at":          {plain[:500], strings.Repeat("s3cret-"+gap, 10_000), false},
		"a cut that may begin anywhere":          {[]string{long + "y"}, "y" + long[1:], false},
		"a cut that may end anywhere":            {[]string{"y" + long}, "a" + gap + long[1:] + "y", false},
		"a large secret":                         {[]string{strings.Repeat("x<", 1<<20)}, strings.Repeat("y", 1<<20), false},
		"a secret of brackets":                   {[]string{strings.Repeat("<", 1<<20)}, strings.Repeat("<", 1<<20) + "!", false},
	} {
		t.Run(name, func(t *testing.T) {
			var text string
			took := cost.Of(func() { text = message.Redact(c.text, c.secrets) })
			if (text == message.Redacted) != c.hidden {
				t.Errorf("hidden is %t, expected %t: %.50s", text == message.Redacted, c.hidden, text)
			}
			if strings.Contains(text, "s3cret-1") || strings.Contains(text, "<") || strings.Contains(text, long[:20]) {
				t.Errorf("a secret is left: %.50s", text)
			}
			took.Expect(t, 2*time.Second, 256<<20)
			t.Logf("%s, %d MiB", took.Work, took.Held>>20)
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
		message.Redact(text, secrets)
	}
}
