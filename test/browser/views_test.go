// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

//go:embed checks.js
var checks string

// TestPage looks at each view of a page with 1,000 clusters and their 30 add-ons, beside clusters with hostile words.
func TestPage(t *testing.T) {
	if world.chromium == "" {
		t.Skip("There is no Chromium in PATH: on Debian, apt-get install chromium")
	}
	clusters := 1000
	if fewer := os.Getenv("CHANDLER_BROWSER_CLUSTERS"); fewer != "" {
		var err error
		clusters, err = strconv.Atoi(fewer)
		must.Succeed(t, err)
	}
	many := &fleet{namespace: "fleet", clusters: clusters, message: "pre-install hook Job kube-system/x: BackoffLimitExceeded",
		word: "2 clusters wait", version: "1.1.0"}
	for i := range 30 {
		many.addons = append(many.addons, fmt.Sprintf("addon-%02d", i))
	}
	many.make(t)
	bad := &fleet{namespace: "hostile", clusters: 12, addons: []string{"web", strings.Repeat("w", 53)}, message: hostile,
		word: hostile + strings.Repeat("W", 5000), version: "1.1.0-" + strings.Repeat("9", 100)}
	bad.make(t)
	bad.install(t, "eu-001")
	origin := serve(t, "-A")
	views := []string{"/", "/stack/hostile/platform", "/cluster/hostile/eu-001", "/?label=region", "/?label=region&open=eu",
		"/?label=" + url.QueryEscape(hostile), "/?open=" + url.QueryEscape(hostile)}
	b := browse(t, origin)
	wait.Until(t, time.Minute, "all clusters are read", func() error {
		if b.visit("/"); !strings.Contains(eval[string](b, "document.body.innerText"), "hostile/platform") {
			return fmt.Errorf("they aren't")
		}
		return nil
	})
	b.noted() // the page said that nothing was read yet
	kinds := map[string]int{}
	for at := 0; at < len(views); at++ { // grows
		t.Run(views[at][:min(len(views[at]), 40)], func(t *testing.T) {
			b.t = t
			looks(t, b, views[at])
			for _, link := range eval[[]string](b, "[...document.querySelectorAll('a[href]')].map((a) => a.href)") {
				address, found := strings.CutPrefix(link, origin)
				if !found {
					t.Errorf("a link leads to %s", link)
				}
				address, _, _ = strings.Cut(address, "#")
				if of := kind(t, address); kinds[of] < 2 && !slices.Contains(views, address) {
					kinds[of]++
					views = append(views, address)
				}
			}
		})
	}
	if len(kinds) < 8 || kinds["values?"] == 0 {
		t.Errorf("views are %v", slices.Sorted(maps.Keys(kinds)))
	}
	b.t = t
	t.Run("time", func(t *testing.T) { b.t = t; opens(t, b) })
	t.Run("refresh", func(t *testing.T) { refreshes(t, origin) })
}

// kind returns what addresses of one view have in common: the first part of their path, and the names in their query.
func kind(t *testing.T, address string) string {
	u, err := url.Parse(address)
	must.Succeed(t, err)
	return strings.SplitN(u.Path, "/", 3)[1] + "?" + strings.Join(slices.Sorted(maps.Keys(u.Query())), "&")
}

// looks shows a view in both schemes of colors, on a phone and on a screen.
func looks(t *testing.T, b *tab, address string) {
	colors := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440} {
			b.as(scheme, width)
			if status := b.visit(address); status != 200 {
				t.Errorf("status %d", status)
			}
			found := append(eval[[]string](b, checks), b.noted()...)
			if strings.Contains(address, "/hostile/") && !strings.Contains(eval[string](b, "document.body.innerText"), "window.ran=1") {
				found = append(found, "the hostile words aren't shown")
			}
			colors[scheme] = eval[string](b, "getComputedStyle(document.body).backgroundColor")
			found = append(append(found, keyboard(b)...), audit(b)...)
			if len(found) > 0 {
				t.Errorf("%s, %d px:\n%s", scheme, width, strings.Join(found, "\n"))
			}
		}
	}
	if colors["light"] == colors["dark"] {
		t.Errorf("both schemes have the background %s", colors["light"])
	}
}

// keyboard returns what is wrong with where Tab goes at first.
func keyboard(b *tab) (found []string) {
	b.do(chromedp.Evaluate("document.activeElement.blur(); scrollTo(0, 0)", nil))
	seen := map[string]bool{}
	for range min(9, eval[int](b, "document.querySelectorAll('a, button, input, summary, .scroll').length")) {
		b.do(chromedp.KeyEvent(kb.Tab))
		is := eval[struct{ Text, Problem string }](b, `(() => {
			const e = document.activeElement, style = getComputedStyle(e), r = e.getBoundingClientRect();
			const isSeen = r.width > 0 && r.left < innerWidth && r.right > 0 && r.top < innerHeight && r.bottom > 0;
			return { Text: e.outerHTML.slice(0, 200), Problem: !e.matches("a, button, input, summary, .scroll") ? "nothing has the focus"
				: style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2 ? "the focus isn't shown" : isSeen ? "" : "the focus is out of sight" };
		})()`)
		if is.Problem != "" {
			found = append(found, is.Problem+": "+is.Text)
		}
		seen[is.Text] = true
	}
	if len(seen) < 7 {
		found = append(found, fmt.Sprintf("Tab reaches %d places", len(seen)))
	}
	return found
}

// audit returns what axe-core finds that is serious, if CHANDLER_AXE names its script. Of long tables it sees the first rows.
func audit(b *tab) []string {
	path := os.Getenv("CHANDLER_AXE")
	if path == "" {
		return nil
	}
	script, err := os.ReadFile(path)
	must.Succeed(b.t, err)
	b.do(chromedp.Evaluate("document.querySelectorAll('tr:nth-child(n+20), article:nth-of-type(n+20), li:nth-child(n+20)').forEach((e) => e.remove())", nil),
		chromedp.Evaluate(string(script), nil))
	return eval[[]string](b, `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join("; ")))`)
}

// opens prints how long the matrix takes, from the click until it is painted: as it is opened, with the clusters that are well folded,
// and with all of them.
func opens(t *testing.T, b *tab) {
	b.as("light", 1440)
	for _, address := range []string{"/", "/?open=fleet"} {
		var times []float64
		for range 7 {
			b.visit(address)
			times = append(times, eval[float64](b, "new Promise((is) => requestAnimationFrame(() => setTimeout(() => is(performance.now()))))"))
		}
		rows := eval[int](b, "document.querySelectorAll('tbody tr').length")
		slices.Sort(times)
		t.Logf("%s: %d rows are painted within %.0f ms (median of %d; %.0f to %.0f)", address, rows, times[3], len(times), times[0], times[6])
	}
}

// TestScreenshots writes pictures for docs into the folder that CHANDLER_SCREENSHOTS names.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("CHANDLER_SCREENSHOTS")
	if folder == "" || world.chromium == "" {
		t.Skip("CHANDLER_SCREENSHOTS names no folder, or there is no Chromium in PATH")
	}
	(&fleet{namespace: "shop", clusters: 15, version: "1.1.0", addons: []string{"cilium", "cert-manager", "ingress-nginx", "metrics-server", "external-dns"},
		message: "pre-upgrade hook Job kube-system/external-dns-check: BackoffLimitExceeded", word: "15 clusters: 12 ready, 1 failed, 2 wait"}).make(t)
	b := browse(t, serve(t, "-n", "shop"))
	b.as("light", 1440)
	wait.Until(t, time.Minute, "the fleet is read", func() error {
		if b.visit("/stack/shop/platform") != 200 {
			return fmt.Errorf("it isn't")
		}
		return nil
	})
	for name, address := range map[string]string{"ui-fleet.png": "/?label=region&open=eu", "ui-rollout.png": "/stack/shop/platform"} {
		var picture []byte
		b.visit(address)
		b.do(chromedp.CaptureScreenshot(&picture))
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), picture, 0o600))
		if len(picture) > 150<<10 {
			t.Errorf("%s has %d KiB", name, len(picture)>>10)
		}
	}
}

// change gives a cluster another message.
func change(t *testing.T, message string) {
	ca := &addonsv1.ClusterAddon{}
	must.Succeed(t, world.hub.Get(t.Context(), client.ObjectKey{Namespace: "hostile", Name: "eu-001"}, ca))
	ca.Status.Addons[1].Message = message
	must.Succeed(t, world.hub.Status().Update(t.Context(), ca))
}
