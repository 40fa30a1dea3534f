// SPDX-License-Identifier: Apache-2.0

// Package answer bounds what an API server answers with, however hostile it is.
package answer

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/cluster-chandler/chandler/fleet/limits"
)

const (
	maxVersion = 64 << 10 // bytes of the answer to a probe
	// minPage is what each further page of a list counts at least, in bytes. So the default allows no more
	// than a thousand pages.
	minPage = 32 << 10
	// maxRetryAfter is how long a server may ask to be left alone, in seconds.
	maxRetryAfter = 60
	// maxPaged is how many lists are known that had pages: they are read one page after the other.
	maxPaged = 1000
)

func tooLarge(request *http.Request, format string, args ...any) *limits.Error {
	_, resource := resourceOf(request.URL.Path)
	return &limits.Error{
		Reason:    limits.ResponseTooLarge,
		Message:   fmt.Sprintf("%s %s was answered with ", request.Method, request.URL.Path) + fmt.Sprintf(format, args...),
		Discovery: !resource,
	}
}

// Bounds bound the answers on one transport.
//
// Key: the address of a list.
// Bound: maxPaged lists.
// Lost with it: the pages of a list count from zero.
type Bounds struct {
	limits limits.Limits
	clock  clock.PassiveClock
	pages  *lru.Cache // bytes that the pages of a list have had, by its address
}

// NewBounds returns Bounds by some limits, which are complete.
func NewBounds(by limits.Limits, clock clock.PassiveClock) *Bounds {
	return &Bounds{limits: by, clock: clock, pages: lru.New(maxPaged)}
}

// Bound limits the body of an answer, the time that the server asks for, and the words of a refusal.
func (b *Bounds) Bound(request *http.Request, response *http.Response) {
	if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && after > maxRetryAfter {
		response.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
	b.boundBody(request, response)
	boundWords(response)
}

func (b *Bounds) boundBody(request *http.Request, response *http.Response) {
	body := &boundedBody{ReadCloser: response.Body, request: request}
	response.Body = body
	query := request.URL.Query()
	list, _ := resourceOf(request.URL.Path)
	switch {
	case IsWatch(request):
		b.boundWatch(body)
	case request.URL.Path == "/version":
		body.limit = maxVersion
	case !list || request.Method != http.MethodGet && request.Method != http.MethodDelete:
		body.limit = max(b.limits.Object, 0)
	case b.limits.List > 0:
		of := request.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
		if query.Get("continue") != "" {
			known, _ := b.pages.Get(of)
			body.had, _ = known.(int64)
		}
		body.limit = b.limits.List
		body.ended = func(size int64) { b.pages.Add(of, body.had+max(size, minPage)) }
	}
	if body.limit > 0 || body.object > 0 {
		body.sizer = sizerOf(response.Header, body.object > 0)
	}
}

// boundWatch limits the events of a watch.
func (b *Bounds) boundWatch(body *boundedBody) {
	if b.limits.WatchRate > 0 {
		saved := b.limits.List
		if saved < 0 {
			saved = math.MaxInt32
		}
		body.clock, body.rate = b.clock, rate.NewLimiter(rate.Limit(b.limits.WatchRate), int(saved))
	}
	body.object = max(b.limits.Object, 0)
}

// IsWatch reports whether a request watches.
func IsWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// resourceOf says whether a path is that of a list of objects, and whether it is of
// objects at all.
func resourceOf(path string) (list, resource bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1, true
}

// boundedBody ends an answer that is larger than it may be.
type boundedBody struct {
	io.ReadCloser
	request *http.Request
	limit   int64 // 0: none
	object  int64 // limit of an event; 0: none
	had     int64 // size of the pages before, if it is a list
	read    int64
	largest int64 // size of the largest object, event or list in it
	sizer   sizer // nil: there is no limit
	rate    *rate.Limiter
	clock   clock.PassiveClock
	ended   func(size int64)
	failed  error
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(into)
	b.read += int64(n)
	if b.sizer != nil {
		b.largest = max(b.largest, int64(b.sizer.add(into[:n], err == io.EOF)))
	}
	switch {
	case b.limit > 0 && b.had+b.read > b.limit:
		b.failed = tooLarge(b.request, "more than %d KiB", b.limit>>10)
	case b.limit > 0 && b.had+b.largest > b.limit:
		b.failed = tooLarge(b.request, "values that take more than %d KiB", b.limit>>10)
	case b.object > 0 && b.largest > b.object:
		b.failed = tooLarge(b.request, "an event of more than %d KiB", b.object>>10)
	case b.rate != nil && !b.rate.AllowN(b.clock.Now(), n):
		b.failed = tooLarge(b.request, "events of more than %d KiB per second", int64(b.rate.Limit())>>10)
	default:
		return n, err
	}
	return 0, b.failed
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	if b.ended != nil {
		b.ended(max(b.read, b.largest))
		b.ended = nil
	}
	return b.ReadCloser.Close()
}
