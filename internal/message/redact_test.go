// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/test/must"
)

const secret = `hunter2"<&+%\ 'é`

func TestHide(t *testing.T) {
	asJSON, err := json.Marshal(map[string]string{"password": secret})
	must.Succeed(t, err)
	for name, text := range map[string]string{
		"plain":          secret,
		"twice":          secret + secret,
		"quoted":         fmt.Sprintf("%q", secret),
		"quoted twice":   fmt.Sprintf("%q", fmt.Sprintf("%q", secret)),
		"JSON":           string(asJSON),
		"JSON quoted":    fmt.Sprintf("%q", asJSON),
		"HTML":           html.EscapeString(secret),
		"a query":        url.QueryEscape(secret),
		"a path":         url.PathEscape(secret),
		"YAML":           "'" + strings.ReplaceAll(secret, "'", "''") + "'",
		"hex":            fmt.Sprintf("%x", secret),
		"capital hex":    fmt.Sprintf("%X", secret),
		"base64":         base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 of more": base64.StdEncoding.EncodeToString([]byte("me:" + secret + "\n")),
		"base64 shifted": base64.URLEncoding.EncodeToString([]byte("a: " + secret + " and")),
		"shifted again":  base64.RawURLEncoding.EncodeToString([]byte("ab: " + secret)),
	} {
		hidden := message.Redact("the object is invalid: "+text+" isn't allowed", []string{"x", "", secret, "another"})
		if !strings.HasPrefix(hidden, "the object is invalid: ") || !strings.HasSuffix(hidden, " isn't allowed") || !strings.Contains(hidden, message.Redacted) {
			t.Errorf("%s: %s", name, hidden)
		}
		for _, part := range []string{"hunter2", "68756e7465723", "aHVudGVyM", "h1bnRlcj", "odW50ZXIy"} {
			if strings.Contains(hidden, part) {
				t.Errorf("%s: %s", name, hidden)
			}
		}
	}
}

// A long part that no escaping changes is hidden, however often the secret was escaped.
func TestHideWhatIsEscapedOften(t *testing.T) {
	const secret = `0123456789abcdefghij"<&`
	text := secret
	for range 5 {
		text = fmt.Sprintf("%q", text)
	}
	if hidden := message.Redact("it is "+text, []string{secret}); strings.Contains(hidden, "0123") || !strings.Contains(hidden, message.Redacted) {
		t.Error(hidden)
	}
}

func TestHideLeavesTheRest(t *testing.T) {
	const text = "Service web/front is invalid: spec.ports[0].port: Invalid value: 70000"
	if hidden := message.Redact(text, []string{"a", "web", "", "hunter2", "   "}); hidden != text {
		t.Error(hidden)
	}
	const words = `set optional: true, not "false", and no null`
	if hidden := message.Redact(words, []string{"true", "False", "null", ":", ",", `"`}); hidden != words {
		t.Error(hidden)
	}
	if hidden := message.Redact("user and username", []string{"user", "username"}); hidden != "[hidden] and [hidden]" {
		t.Error(hidden)
	}
}

// A Secret may have up to a MiB, as a bundle of certificates. Escaped again and again it
// would take gigabytes.
func TestHideTakesNoTimeForWhatDoesNotFit(t *testing.T) {
	large := strings.Repeat(secret, 1<<20/len(secret))
	const text = "Deployment web/front is invalid: spec.replicas: Invalid value: -1"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if hidden := message.Redact(text, []string{large}); hidden != text {
		t.Error(hidden)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d MiB to see that a text of %d bytes doesn't have a secret of a MiB in it", took>>20, len(text))
	}
	if hidden := message.Redact("values: "+large+", refused", []string{large}); hidden != "values: [hidden], refused" {
		t.Errorf("a text with the whole of it begins with %.100q", hidden)
	}
}

func TestHideLines(t *testing.T) {
	key := "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ\nshort\n-----END KEY-----\n"
	got := message.Redact(`line 2: "MC4CAQAwBQYDK2VwBCIEIJ" is no number, short is`, []string{key})
	if want := `line 2: "[hidden]" is no number, short is`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestHideInValues has secrets that YAML writes in several lines.
func TestHideInValues(t *testing.T) {
	const short, long = "user=bob\npass=hunter2\n", "host=db user=bob password=hunter2 sslmode=verify-full sslrootcert=/etc/db/ca.crt"
	values := map[string]any{
		"short": short, "more": "a: b\n" + short, long: true, "": nil, "number": 1.5,
		"list": []any{"host, port and user of the data base, as clients have it: " + long, "plain", map[string]any{}},
	}
	want := map[string]any{
		"short": "[hidden]", "more": "a: b\n[hidden]", "[hidden]": true, "": nil, "number": 1.5,
		"list": []any{"host, port and user of the data base, as clients have it: [hidden]", "plain", map[string]any{}},
	}
	if diff := cmp.Diff(want, message.RedactIn(values, []string{short, long})); diff != "" {
		t.Error(diff)
	}
	if is := message.RedactIn(map[string]any{"a": "x\x00y", "b": short}, []string{short, "y\x00"}); strings.Contains(fmt.Sprint(is), "hunter2") {
		t.Error(is)
	}
	if is := message.RedactIn(nil, []string{short}); len(is) > 0 {
		t.Error(is)
	}
}

// TestHideAtCuts cuts texts at each place before secrets are taken out of them.
func TestHideAtCuts(t *testing.T) {
	const secret, most = "Zb7Q/k1x+Tq9\"w4M&v2Jc8HdPz5Rg0LnYs3E", 8
	asJSON, err := json.Marshal(secret)
	must.Succeed(t, err)
	for name, form := range map[string]string{
		"plain":  secret,
		"JSON":   strings.Trim(string(asJSON), `"`),
		"hex":    fmt.Sprintf("%x", secret),
		"base64": message.InBase64(secret)[0],
	} {
		written := form
		if name == "base64" {
			written = base64.StdEncoding.EncodeToString([]byte("me:" + secret + "\n"))
		}
		whole := "the object is invalid: " + written + ", and so on and on to the end of it"
		for at := range whole {
			for _, text := range []string{whole[:at], message.Shorten(whole, at+10)} {
				hidden := message.Redact(text, []string{secret})
				for from := range len(form) - most {
					if part := form[from : from+most]; strings.Contains(hidden, part) {
						t.Fatalf("%s, cut as %s: %s is left in %s", name, text, part, hidden)
					}
				}
			}
		}
	}
}

func TestList(t *testing.T) {
	for want, texts := range map[string][]string{
		"":                 nil,
		"a":                {"a"},
		"a, b":             {"a", "b"},
		"a, b, and 1 more": {"a", "b", "c"},
		"a, b, and 3 more": {"a", "b", "c", "d", "e"},
	} {
		if got := message.List(texts, ", ", 2); got != want {
			t.Errorf("%q became %q, expected %q", texts, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	if got := message.Shorten("short", 20); got != "short" {
		t.Errorf("got %q", got)
	}
	if got := message.Shorten("a.yaml:4:20:\r\n  cause \n\n- b\n", 40); got != "a.yaml:4:20: cause - b" {
		t.Errorf("lines became %q", got)
	}
	if got := message.Shorten("chart of web"+strings.Repeat(" é", 400)+"; correct web", 900); len(got) > 900 || !strings.HasSuffix(got, "; correct web") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestFirstFew(t *testing.T) {
	if got := message.FirstFew([]string{"a", "b", "c", "d", "e"}); got != "a; b; c; and 2 more" {
		t.Error(got)
	}
}
