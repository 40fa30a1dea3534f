// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"
)

// Fault is one way to fail.
type Fault func(answer)

// answer is one that is to be spoiled.
type answer struct {
	w    http.ResponseWriter
	r    *http.Request
	good http.Handler
	over <-chan struct{} // closed when the server is healed
}

// proper is the answer as it should be.
func (a answer) proper() *httptest.ResponseRecorder {
	proper := httptest.NewRecorder()
	a.good.ServeHTTP(proper, a.r)
	return proper
}

// begin sends the head of an answer, with the length that its body should have.
func (a answer) begin(proper *httptest.ResponseRecorder) {
	header := a.w.Header()
	for name, values := range proper.Header() {
		header[name] = values
	}
	header.Set("Content-Length", strconv.Itoa(proper.Body.Len()))
	a.w.WriteHeader(proper.Code)
	if flusher, ok := a.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Trickle answers with one byte each second.
func Trickle(a answer) {
	proper := a.proper()
	a.begin(proper)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for proper.Body.Len() > 0 {
		select {
		case <-a.r.Context().Done():
			return
		case <-a.over:
			_, _ = a.w.Write(proper.Body.Bytes()) // if the client is still there
			return
		case <-tick.C:
			_, _ = a.w.Write(proper.Body.Next(1))
			a.w.(http.Flusher).Flush()
		}
	}
}

// Silent doesn't answer.
func Silent(a answer) {
	select {
	case <-a.r.Context().Done():
	case <-a.over:
		a.good.ServeHTTP(a.w, a.r)
	}
}

// RedirectForever redirects to another place each time.
func RedirectForever() Fault {
	var times atomic.Int64
	return func(a answer) {
		http.Redirect(a.w, a.r, a.r.URL.Path+"?again="+strconv.FormatInt(times.Add(1), 10), http.StatusFound)
	}
}

// WebPage answers everything with a page for people.
func WebPage(a answer) {
	a.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = a.w.Write([]byte("<!DOCTYPE html>\n<html><body>Welcome to the guest network: {please} log in</body></html>\n"))
}

// Truncate breaks off in the middle of the body.
func Truncate(a answer) {
	proper := a.proper()
	a.begin(proper)
	_, _ = a.w.Write(proper.Body.Bytes()[:proper.Body.Len()/2])
	a.w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// HangUp closes the connection.
func HangUp(answer) { panic(http.ErrAbortHandler) }

// Status answers with a status code; with Retry-After, in seconds, unless that is 0.
func Status(code, retryAfter int) Fault {
	return func(a answer) {
		if retryAfter > 0 {
			a.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		http.Error(a.w, http.StatusText(code), code)
	}
}

// Tamper changes a byte of each archive.
func Tamper(a answer) {
	proper := a.proper()
	if body := proper.Body.Bytes(); isArchive(body) {
		body[len(body)-1] ^= 1
	}
	a.begin(proper)
	_, _ = a.w.Write(proper.Body.Bytes())
}

// Endless sends archives that never end.
func Endless(a answer) {
	proper := a.proper()
	if !isArchive(proper.Body.Bytes()) {
		a.begin(proper)
		_, _ = a.w.Write(proper.Body.Bytes())
		return
	}
	a.w.WriteHeader(http.StatusOK)
	for a.r.Context().Err() == nil {
		if _, err := a.w.Write(make([]byte, 64<<10)); err != nil {
			return
		}
	}
}

func isArchive(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }
