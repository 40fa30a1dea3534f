// SPDX-License-Identifier: Apache-2.0

// Package message makes texts fit for conditions, events and logs: lists are kept short, and
// what comes from Secrets is kept out. Templates can fail with any text, and API servers
// quote what they refuse.
package message

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

// Redacted stands for what was taken out.
const Redacted = "[hidden]"

const (
	// shortest secret that is hidden, in bytes: without shorter ones no text would be left.
	shortest = 4
	// longPart is how long a part of a secret has to be to be told from other text, in bytes.
	longPart = 16
	// maxWork is how many bytes of text are looked through, times the secrets: a second's worth at most. Both texts
	// and secrets may be made to take for ever.
	maxWork = 64 << 20
)

// plain are words that values have and that tell nothing: messages need them.
var plain = []string{"true", "false", "null"}

// Hides reports whether a secret is hidden: it isn't if it is too short, or a plain word.
func Hides(secret string) bool {
	return len(secret) >= shortest && !slices.Contains(plain, strings.ToLower(secret))
}

// escapes are what encoders make of a string, of whatever is around it. What is quoted may have been JSON, or quoted before.
var escapes = []func(string) string{
	func(s string) string { return s },
	quoted,
	asJSON,
	func(s string) string { // JSON, with < > and & as they are
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(asJSON(s))
	},
	func(s string) string { return quoted(quoted(s)) },
	func(s string) string { return quoted(asJSON(s)) },
	html.EscapeString,
	url.QueryEscape,
	url.PathEscape,
	func(s string) string { return strings.ReplaceAll(s, "'", "''") }, // YAML
}

func quoted(s string) string { return inner(strconv.Quote(s)) }

func asJSON(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return s // strings can't fail
	}
	return inner(string(text))
}

// inner returns a quoted string without its quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// Redact takes secrets out of a text: as they are, and escaped, in hex, or in base64, of
// which they may be a part. If that takes too much work, nothing of the text is left.
func Redact(text string, secrets []string) string {
	if len(text)*len(secrets) > maxWork {
		return Redacted
	}
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, secret := range slices.Compact(secrets) {
		trimmed := strings.TrimSpace(secret)
		text = hide(text, secret)
		if trimmed != secret {
			text = hide(text, trimmed)
		}
		text = hideAtCuts(hideLines(text, secret), trimmed)
	}
	return text
}

// hide takes a secret out of a text.
func hide(text, secret string) string {
	if len(secret) > len(text) || !Hides(secret) {
		return text // nothing that encoders make of it is shorter
	}
	if part := constant(secret); strings.Contains(text, part) {
		for _, escape := range escapes {
			text = strings.ReplaceAll(text, escape(secret), Redacted)
		}
		if len(part) >= longPart { // it may have been escaped again and again
			text = strings.ReplaceAll(text, part, Redacted)
		}
	}
	for _, form := range inHex(secret) {
		text = strings.ReplaceAll(text, form, Redacted)
	}
	for _, part := range InBase64(secret) {
		if strings.Contains(text, part) {
			// With it goes the whole of what it is a part of.
			text = regexp.MustCompile(`[0-9A-Za-z+/_-]*`+regexp.QuoteMeta(part)+`[0-9A-Za-z+/_-]*=*`).ReplaceAllLiteralString(text, Redacted)
		}
	}
	return text
}

// constant returns the longest part of a secret that no escaping changes.
func constant(secret string) string {
	longest := ""
	for _, part := range strings.FieldsFunc(secret, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// hideLines takes out single lines of a secret that has several, as a key in PEM.
func hideLines(text, secret string) string {
	if !strings.Contains(secret, "\n") {
		return text
	}
	for line := range strings.SplitSeq(secret, "\n") {
		if line = strings.TrimSpace(line); len(line) >= longPart {
			text = strings.ReplaceAll(text, line, Redacted)
		}
	}
	return text
}

func inHex(secret string) []string {
	encoded := hex.EncodeToString([]byte(secret))
	return []string{encoded, strings.ToUpper(encoded)}
}

// InBase64 returns the characters of the secret in base64 that don't depend on the text around it,
// for each of the places that it may begin at. Short secrets have too few such characters left to
// tell them from other text.
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
