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
	"sync/atomic"
)

// Redacted stands for what was taken out.
const Redacted = "[hidden]"

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

// inner returns a quoted string without its quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// Redact takes secrets out of a text: as they are, and escaped, in hex, or in base64, of
// which they may be a part. If that takes too much work, nothing of the text is left.
func Redact(text string, secrets []string) string { return NewRedactor(secrets).Redact(text) }

// maxWork is how much text is looked through for the sake of one set of secrets, in bytes:
// half a second's worth, or so. Both texts and secrets may be made to take for ever.
const maxWork = 512 << 20

// Redactor looks for secrets in texts. It is safe for concurrent use.
type Redactor struct {
	secrets []string
	left    atomic.Int64
}

// NewRedactor returns one for these secrets, with as much work to find them as is ever spent.
func NewRedactor(secrets []string) *Redactor {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	s := &Redactor{secrets: slices.Compact(secrets)}
	s.left.Store(maxWork)
	return s
}

// Redact takes the secrets out of a text, as the function does. With nothing left of the work
// it may take, nothing is left of the text.
func (s *Redactor) Redact(text string) string {
	if text == "" || len(s.secrets) == 0 {
		return text
	}
	h := &hiding{text: text, left: &s.left}
	for _, secret := range s.secrets {
		trimmed := strings.TrimSpace(secret)
		h.hide(secret)
		if trimmed != secret {
			h.hide(trimmed)
		}
		h.hideLines(secret)
		h.hideAtCuts(trimmed)
		if s.left.Load() < 0 {
			return Redacted
		}
	}
	return h.text
}

// hiding is a text that secrets are taken out of.
type hiding struct {
	text string
	left *atomic.Int64
}

// has reports whether the text has a part. Without work left it doesn't look.
func (h *hiding) has(part string) bool {
	return h.left.Add(-int64(len(h.text)+len(part))) >= 0 && strings.Contains(h.text, part)
}

func (h *hiding) replace(part string) {
	if h.has(part) {
		h.text = strings.ReplaceAll(h.text, part, Redacted)
	}
}

// longLine is how long a line of a secret has to be to be told from other text, in bytes.
const longLine = 16

// hideLines takes out single lines of a secret that has several, as a key in PEM.
func (h *hiding) hideLines(secret string) {
	if !strings.Contains(secret, "\n") {
		return
	}
	for line := range strings.SplitSeq(secret, "\n") {
		if line = strings.TrimSpace(line); len(line) >= longLine {
			h.replace(line)
		}
	}
}

// Hides reports whether a secret is hidden: it isn't if it is too short, or a plain word.
func Hides(secret string) bool {
	return len(secret) >= shortest && !slices.Contains(plain, strings.ToLower(secret))
}

// leastLeft is how much is told from other text of a secret that was cut, in bytes of the text.
const leastLeft = 8

// written returns those forms of a secret that may have these bytes: as it is and in JSON, in hex and in base64.
func (h *hiding) written(secret, part string) []string {
	const work = 256 // which encoding takes, as to look through so many bytes
	h.left.Add(-int64(len(secret) + work))
	forms := []string{secret}
	if strings.Contains(h.text, `\`) {
		forms = append(forms, asJSON(secret))
	}
	if !strings.ContainsAny(part, " \t\n.,:;'\"") {
		h.left.Add(-int64(8 * (len(secret) + work)))
		inHex := hex.EncodeToString([]byte(secret))
		forms = append(forms, inHex, strings.ToUpper(inHex))
		forms = append(forms, InBase64(secret)...)
	}
	if h.left.Load() < 0 {
		return nil // nothing is shown
	}
	return forms
}

func (h *hiding) hide(secret string) {
	if len(secret) > len(h.text) || !Hides(secret) {
		return // nothing that encoders make of it is shorter
	}
	if h.has(constant(secret)) {
		for _, form := range h.escaped(secret) {
			h.replace(form)
		}
	}
	encoded := hex.EncodeToString([]byte(secret))
	h.replace(encoded)
	h.replace(strings.ToUpper(encoded))
	for _, part := range InBase64(secret) {
		if h.has(part) {
			// With it goes the whole of what it is a part of.
			h.left.Add(-int64(16 * len(h.text))) // which takes longer than to look for it
			h.text = regexp.MustCompile(`[0-9A-Za-z+/_-]*`+regexp.QuoteMeta(part)+`[0-9A-Za-z+/_-]*=*`).ReplaceAllLiteralString(h.text, Redacted)
		}
	}
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

// escaped returns the secret and its escaped forms, the longest first. A form that is longer than
// the searched text is left out: it would only get longer, and some secrets are large.
func (h *hiding) escaped(secret string) []string {
	all, last := []string{secret}, []string{secret}
	for range rounds {
		var next []string
		for _, s := range last {
			for _, escape := range escapes {
				if h.left.Add(-int64(len(s))) < 0 {
					return nil
				}
				if e := escape(s); len(e) <= len(h.text) && !slices.Contains(all, e) {
					all, next = append(all, e), append(next, e)
				}
			}
		}
		last = next
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
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
