// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cluster-chandler/chandler/test/must"
)

// patience is how long a test waits for the browser to do one thing.
const patience = 2 * time.Minute

// tab is a tab of a browser that shows pages of one origin.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string // errors in its console, and requests to elsewhere
}

// browse starts a browser, which ends with the test. Scripts run in each page before its own ones.
func browse(t *testing.T, origin string, scripts ...string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(world.chromium), chromedp.NoSandbox)
	allocated, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, stop := chromedp.NewContext(allocated)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, origin: origin}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.note("console: " + string(e.Args[0].Value))
			}
		case *runtime.EventExceptionThrown:
			b.note("exception: " + e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.note("log: " + e.Entry.Text + " " + e.Entry.URL)
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; url != origin && !strings.HasPrefix(url, origin+"/") {
				b.note("request to " + url)
			}
		}
	})
	b.do(log.Enable())
	for _, script := range scripts {
		b.do(chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
			return err
		}))
	}
	return b
}

func (b *tab) note(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// noted returns the problems since the last time.
func (b *tab) noted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := b.problems
	b.problems = nil
	return is
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	must.Succeed(b.t, chromedp.Run(b.ctx, actions...))
}

// as has the page shown in a scheme of colors, "light" or "dark", and at a width in pixels.
func (b *tab) as(scheme string, width int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// visit opens a view, and returns its status.
func (b *tab) visit(address string) int64 {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	answer, err := chromedp.RunResponse(ctx, chromedp.Navigate(b.origin+address))
	must.Succeed(b.t, err)
	return answer.Status
}

// eval returns the value of an expression, and of a promise what it is fulfilled with.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	var is T
	b.do(chromedp.Evaluate(expression, &is, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return is
}
