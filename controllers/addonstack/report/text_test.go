// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// A message has room for what is wrong and for the way out, however many there are.
func TestMessagesNameTheWayOut(t *testing.T) {
	long := func(what string) string { return "chart of " + what + strings.Repeat(" é", 400) + "; correct " + what }
	for name, tc := range map[string]struct {
		texts []string
		whole []string // are in it uncut
		parts []string
	}{
		"one":              {texts: []string{strings.Repeat("a", 900)}, whole: []string{strings.Repeat("a", 900)}},
		"one that is long": {texts: []string{long("web")}, parts: []string{"chart of web", " ... ", "; correct web"}},
		"two, one is short": {
			texts: []string{strings.Repeat("a", 440), "short"}, whole: []string{strings.Repeat("a", 440) + "; short"},
		},
		"several": {
			texts: []string{long("web"), "short", long("dns"), long("log"), "last"},
			whole: []string{"; short; ", "; and 2 more"},
			parts: []string{"chart of web", "; correct web; short; chart of dns", "; correct dns; and 2 more"},
		},
	} {
		got := report.FirstOf(tc.texts)
		for _, part := range append(tc.whole, tc.parts...) {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q has no %q", name, got, part)
			}
		}
		if len(got) > 950 || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes: %q", name, len(got), got)
		}
	}
}

// A condition's message has at most 32768 bytes, however many clusters fail for however many causes.
func TestClustersReadyStaysShort(t *testing.T) {
	failures := standing.Causes{}
	for i := range 5000 {
		failures.Add(fmt.Sprintf("cluster-%04d", i), standing.OfAddon("a", &addonsv1.AddonStatus{
			Name: "web", Phase: addonsv1.AddonFailed, Reason: "HookFailed", Message: fmt.Sprint(i, strings.Repeat("x", 1024)),
		}))
	}
	c := report.ClustersReady(&addonsv1.ClusterCounts{Total: 5000, Failed: 5000}, failures.Describe())
	if len(c.Message) > 8192 || !strings.Contains(c.Message, "and 4997 more") || !strings.Contains(c.Message, "cluster-0000") {
		t.Errorf("message of %d bytes: %.200s", len(c.Message), c.Message)
	}
}
