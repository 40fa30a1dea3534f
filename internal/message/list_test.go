// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cluster-chandler/chandler/internal/message"
)

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
