// SPDX-License-Identifier: Apache-2.0

package secrecy_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/secrecy"
)

const secret = `hunter2"<&+%\ 'é`

func TestHide(t *testing.T) {
	asJSON, err := json.Marshal(map[string]string{"password": secret})
	if err != nil {
		t.Fatal(err)
	}
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
		"hex":            fmt.Sprintf("%x", secret),
		"capital hex":    fmt.Sprintf("%X", secret),
		"base64":         base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 of more": base64.StdEncoding.EncodeToString([]byte("me:" + secret + "\n")),
		"base64 shifted": base64.URLEncoding.EncodeToString([]byte("a: " + secret + " and")),
		"shifted again":  base64.RawURLEncoding.EncodeToString([]byte("ab: " + secret)),
	} {
		hidden := secrecy.Hide("the object is invalid: "+text+" isn't allowed", []string{"x", "", secret, "another"})
		if !strings.HasPrefix(hidden, "the object is invalid: ") || !strings.HasSuffix(hidden, " isn't allowed") || !strings.Contains(hidden, secrecy.Hidden) {
			t.Errorf("%s: %s", name, hidden)
		}
		for _, part := range []string{"hunter2", "68756e7465723", "aHVudGVyM", "h1bnRlcj", "odW50ZXIy"} {
			if strings.Contains(hidden, part) {
				t.Errorf("%s: %s", name, hidden)
			}
		}
	}
}

func TestHideLeavesTheRest(t *testing.T) {
	const text = "Service web/front is invalid: spec.ports[0].port: Invalid value: 70000"
	if hidden := secrecy.Hide(text, []string{"a", "web", "", "hunter2", "   "}); hidden != text {
		t.Error(hidden)
	}
	if hidden := secrecy.Hide("user and username", []string{"user", "username"}); hidden != "[hidden] and [hidden]" {
		t.Error(hidden)
	}
}
