// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// sentinels are secrets that a test gave out, by where it put each.
type sentinels map[string]string

// telling is how much of a secret mustn't be seen either. What follows may be written
// in many ways, as by escaping it.
const telling = 16

// plant makes a secret. Its end is of characters that JSON, YAML, URLs and Go escape.
func (ss sentinels) plant(where string) string {
	return ss.note(where, utilrand.String(2*telling)+`"<&+%\ '`)
}

// plantPlain makes a secret that may be anywhere, as in a header.
func (ss sentinels) plantPlain(where string) string {
	return ss.note(where, utilrand.String(2*telling))
}

func (ss sentinels) note(where, secret string) string {
	if _, twice := ss[where]; twice {
		panic("two secrets " + where)
	}
	ss[where] = secret
	return secret
}

// in tells which secrets are in a text, and how they are written there.
func (ss sentinels) in(text []byte) []string {
	var found []string
	dumped := undump(text)
	for _, where := range slices.Sorted(maps.Keys(ss)) {
		for form, written := range formsOf(ss[where]) {
			if at := bytes.Index(text, []byte(written)); at >= 0 {
				found = append(found, fmt.Sprintf("the secret of %s, %s: %q", where, form, around(text, at)))
			} else if bytes.Contains(dumped, []byte(written)) {
				found = append(found, fmt.Sprintf("the secret of %s, %s, in a hex dump", where, form))
			}
		}
	}
	return found
}

// formsOf a secret: each is a part of it that a longer one has, too.
func formsOf(secret string) map[string]string {
	head := secret[:telling]
	forms := map[string]string{
		"its beginning": head, "its end": secret[len(secret)-telling:],
		"in hex": hex.EncodeToString([]byte(head)), "in capital hex": strings.ToUpper(hex.EncodeToString([]byte(head))),
		"as a list of bytes": strings.Trim(fmt.Sprintf("%d", []byte(head)), "[]"),
	}
	// In base64 it looks otherwise after one or two other characters, as in user:password.
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + head))
		first := (shift*8 + 5) / 6 // characters that depend on what is before it
		last := len(encoded) - 1   // and after
		for name, replace := range map[string]*strings.Replacer{"": strings.NewReplacer(), " for URLs": strings.NewReplacer("+", "-", "/", "_")} {
			forms[fmt.Sprintf("in base64%s, %d characters on", name, shift)] = replace.Replace(encoded[first:last])
		}
	}
	return forms
}

func around(text []byte, at int) []byte {
	return text[max(0, at-120):min(len(text), at+120)]
}

var dump = regexp.MustCompile(`(?m)^\s*[0-9a-f]{8}  ((?:[0-9a-f]{2} {1,2}){1,16}) *\|`)

// undump returns the content of all lines that hex.Dump wrote.
func undump(text []byte) []byte {
	var content []byte
	for _, line := range dump.FindAllSubmatch(text, -1) {
		decoded, err := hex.DecodeString(strings.ReplaceAll(string(line[1]), " ", ""))
		if err == nil {
			content = append(content, decoded...)
		}
	}
	return content
}

// TestSentinelsAreFound shows that a secret is found however it is written, and only
// then.
func TestSentinelsAreFound(t *testing.T) {
	t.Parallel()
	ss := sentinels{}
	secret := ss.plant("a password")
	asJSON, err := json.Marshal(map[string]string{"password": secret})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, text := range map[string]string{
		"plain":                secret,
		"within":               "password=" + secret + " is wrong",
		"JSON":                 string(asJSON),
		"JSON in JSON":         fmt.Sprintf("%q", asJSON),
		"an URL":               "https://host/?password=" + url.QueryEscape(secret),
		"base64":               base64.StdEncoding.EncodeToString([]byte(secret)),
		"basic authentication": base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		"basic, other length":  base64.URLEncoding.EncodeToString([]byte("user:" + secret)),
		"base64 of YAML":       base64.StdEncoding.EncodeToString([]byte("a:\n  password: " + secret + "\n")),
		"hex":                  fmt.Sprintf("%x", secret),
		"capital hex":          fmt.Sprintf("%X", secret),
		"bytes":                fmt.Sprintf("%v", []byte(secret)),
		"a dump":               `I1121 12:00:00 request.go:1] "Response Body" body=<` + "\n\t" + strings.ReplaceAll(hex.Dump([]byte("k8s\x00 a Secret "+secret)), "\n", "\n\t") + "\n >",
		"its first characters": secret[:telling] + "...",
		"its last characters":  "..." + secret[len(secret)-telling:],
	} {
		if len(ss.in([]byte(text))) == 0 {
			t.Errorf("%s: not found in %s", name, text)
		}
	}
	for _, text := range []string{"", "nothing of it", secret[:telling-1], base64.StdEncoding.EncodeToString([]byte("me:another")), sentinels{}.plant("another")} {
		if found := ss.in([]byte(text)); len(found) > 0 {
			t.Errorf("%s: found %v", text, found)
		}
	}
}
