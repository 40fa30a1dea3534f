// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/cluster-chandler/chandler/test/wait"
)

// takesOver keeps the page's own refresh from running by the clock: window.refresh does it. If window.changes is set, the page is told
// each time that the fleet was read again.
const takesOver = `window.setInterval = (f) => { window.refresh = f; return 0; };
const ask = window.fetch;
let readings = 0;
window.fetch = (to) => window.changes && to === "/reading" ? Promise.resolve(new Response("again " + ++readings)) : ask(to);`

// refreshes has the page refresh itself.
func refreshes(t *testing.T, origin string) {
	b := browse(t, origin, takesOver)
	t.Run("follows changes", func(t *testing.T) {
		b.t = t
		b.as("light", 390)
		b.visit("/causes")
		b.do(chromedp.Evaluate(`document.querySelector("details").open = true; document.querySelector("main summary").focus()`, nil))
		change(t, "another message than before")
		wait.Until(t, time.Minute, "the page shows the change", func() error {
			if !eval[bool](b, `refresh().then(() => document.body.innerText.includes("another message than before"))`) {
				return errors.New("it doesn't")
			}
			return nil
		})
		if !eval[bool](b, `document.querySelector("details").open && document.activeElement.tagName === "SUMMARY"`) {
			t.Error("what was unfolded is folded again, or lost the focus")
		}
		b.visit("/")
		b.do(chromedp.Evaluate(`window.changes = true; const [, matrix] = document.querySelectorAll(".scroll");
			matrix.scrollLeft = 300; matrix.focus()`, nil))
		if !eval[bool](b, `refresh().then(() => { const [, now] = document.querySelectorAll(".scroll");
			return now !== matrix && now.scrollLeft === 300 && now === document.activeElement; })`) {
			t.Error("the matrix was scrolled back, or lost the focus")
		}
	})
	for _, address := range []string{"/", "/causes", "/stack/hostile/platform"} {
		t.Run("doesn't grow"+address, func(t *testing.T) {
			b.t = t
			b.visit(address)
			b.do(chromedp.Evaluate("window.changes = true", nil))
			refresh := func(times int) (heap, nodes float64) {
				if n := eval[int](b, `(async (n) => { for (let i = 0; i < n; i++) await refresh(); return n; })(`+strconv.Itoa(times)+`)`); n != times {
					t.Errorf("%d refreshes", n)
				}
				return size(b)
			}
			heap, nodes := refresh(20)
			later, more := refresh(180)
			t.Logf("after 20 refreshes %.2f MiB and %.0f nodes, after 200 %.2f MiB and %.0f nodes", heap/(1<<20), nodes, later/(1<<20), more)
			if later > heap*1.1+(1<<18) || more > nodes*1.02+50 {
				t.Error("the page grows")
			}
		})
	}
	if found := b.noted(); len(found) > 0 {
		t.Error(found)
	}
}

// size returns the bytes of the scripts' heap and the number of nodes, without garbage.
func size(b *tab) (heap, nodes float64) {
	b.t.Helper()
	b.do(heapprofiler.CollectGarbage(), heapprofiler.CollectGarbage(), performance.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			switch m.Name {
			case "JSHeapUsedSize":
				heap = m.Value
			case "Nodes":
				nodes = m.Value
			}
		}
		return err
	}))
	return heap, nodes
}
