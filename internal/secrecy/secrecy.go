// SPDX-License-Identifier: Apache-2.0

// Package secrecy keeps what comes from Secrets out of messages: templates can fail
// with any text, and API servers quote what they refuse.
package secrecy

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hidden stands for what was taken out.
const Hidden = "[hidden]"

// shortest secret that is hidden, in bytes: without shorter ones no text would be left.
const shortest = 4

// plain are words that values have and that tell nothing: messages need them.
var plain = []string{"true", "false", "null"}

// rounds is how often a secret may have been escaped, as in JSON in a quoted string.
const rounds = 3

// escapes are what encoders make of a string, of whatever is around it.
var escapes = []func(string) string{
	func(s string) string { return inner(strconv.Quote(s)) },
	func(s string) string { // JSON, with < > and & as they are
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(asJSON(s))
	},
	asJSON,
	html.EscapeString,
	url.QueryEscape,
	url.PathEscape,
	func(s string) string { return strings.ReplaceAll(s, "'", "''") }, // YAML
}

func asJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return s // strings can't fail
	}
	return inner(string(quoted))
}

// inner is a quoted string without its quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// Hide takes secrets out of a text: as they are, and escaped, in hex, or in base64, of
// which they may be a part.
func Hide(text string, secrets []string) string {
	if text == "" {
		return text
	}
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, secret := range slices.Compact(secrets) {
		for _, s := range []string{secret, strings.TrimSpace(secret)} {
			if len(s) >= shortest && !slices.Contains(plain, strings.ToLower(s)) {
				text = hide(text, s)
			}
		}
		text = hideLines(text, secret)
	}
	return text
}

// longLine is how long a line of a secret has to be to be told from other text, in bytes.
const longLine = 16

// hideLines takes out single lines of a secret that has several, as a key in PEM.
func hideLines(text, secret string) string {
	lines := strings.Split(secret, "\n")
	if len(lines) == 1 {
		return text
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); len(line) >= longLine {
			text = strings.ReplaceAll(text, line, Hidden)
		}
	}
	return text
}

func hide(text, secret string) string {
	if len(secret) > len(text) {
		return text // nothing that encoders make of it is shorter
	}
	for _, form := range escaped(secret, len(text)) {
		text = strings.ReplaceAll(text, form, Hidden)
	}
	encoded := hex.EncodeToString([]byte(secret))
	text = strings.NewReplacer(encoded, Hidden, strings.ToUpper(encoded), Hidden).Replace(text)
	for _, part := range InBase64(secret) {
		if strings.Contains(text, part) {
			// With it goes the whole of what it is a part of.
			text = regexp.MustCompile(`[0-9A-Za-z+/_-]*`+regexp.QuoteMeta(part)+`[0-9A-Za-z+/_-]*=*`).ReplaceAllLiteralString(text, Hidden)
		}
	}
	return text
}

// escaped are the secret and what escaping makes of it, the longest first. What is
// longer than the text that it is looked for in is left out: it would only get longer,
// and some secrets are large.
func escaped(secret string, longest int) []string {
	all, last := []string{secret}, []string{secret}
	for range rounds {
		var next []string
		for _, s := range last {
			for _, escape := range escapes {
				if e := escape(s); len(e) <= longest && !slices.Contains(all, e) {
					all, next = append(all, e), append(next, e)
				}
			}
		}
		last = next
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// InBase64 returns those characters of the secret in base64 that don't depend on what is
// around it, for each of the places that it may begin at. Of short ones too little is
// left to tell them from other text.
func InBase64(secret string) []string {
	const least = 8 // characters
	var parts []string
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		first, last := (before*8+5)/6, len(encoded)
		if (before+len(secret))%3 != 0 {
			last-- // it has bits of what follows
		}
		if last-first < least {
			continue
		}
		part := encoded[first:last]
		parts = append(parts, part)
		if forURLs := strings.NewReplacer("+", "-", "/", "_").Replace(part); forURLs != part {
			parts = append(parts, forURLs)
		}
	}
	return parts
}
