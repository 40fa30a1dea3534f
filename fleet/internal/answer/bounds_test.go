// SPDX-License-Identifier: Apache-2.0

package answer_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// bound bounds the answer to a request.
func bound(t testing.TB, by *answer.Bounds, request *http.Request, response *http.Response) {
	t.Helper()
	body, err := by.Begin(request, answer.Of(request, ""))
	if err != nil {
		t.Fatal(err)
	}
	body.Bound(response)
}

// A watch's bytes are counted by time: what one may send at once it may send again later.
func TestWatchSavesUpBytes(t *testing.T) {
	const list, rate = 32 << 20, 64 << 10
	clock := testingclock.NewFakePassiveClock(time.Now())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("{}"), list)))}
	bound(t, answer.NewBounds(limits.Limits{}.Defaulted(), clock, nil, budget.Tenant{}), request, response)
	read := func(n int) error {
		_, err := io.ReadFull(response.Body, make([]byte, n))
		return err
	}
	if err := read(list); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if err := read(rate); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*limits.Error](read(1)); !ok {
		t.Error("one byte more was read")
	}
}

// Pages that have all bytes that a list may have leave nothing to the next page.
func TestPagesThatEndAtTheLimit(t *testing.T) {
	const list = 64 << 10
	bounds := answer.NewBounds(limits.Limits{List: list}.Defaulted(), testingclock.NewFakePassiveClock(time.Now()), nil, budget.Tenant{})
	page := func(query string, size int) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x/api/v1/pods?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(make([]byte, size)))}
		bound(t, bounds, request, response)
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return err
	}
	if err := page("limit=500", list); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*limits.Error](page("limit=500&continue=x", 1)); !ok {
		t.Error("a page more was read")
	}
}
