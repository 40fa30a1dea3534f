// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Limits of the answers of an API server, in bytes and after unpacking. An object has at most 1.5
// MiB in etcd; the discovery document of a cluster with 2,000 CRDs has about 2 MiB.
const (
	maxVersion = 64 << 10 // the answer to a probe
	maxObject  = 4 << 20  // one object, one event of a watch, one discovery document
	maxList    = 32 << 20 // a list, with all of its pages
	// minPage is what each further page of a list counts at least, so that there are
	// no more than a thousand.
	minPage = 32 << 10
	// watchRate is how many bytes a watch may send in a second. It may save up maxList
	// of them: that is also what the objects take that a watch begins with.
	watchRate = 64 << 10
	// maxRetryAfter is how long a server may ask to be left alone, in seconds.
	maxRetryAfter = 60
)

// TooManyKinds is the reason of a LimitError where a server says that it has more API
// versions than the manager reads. No State has it: the cluster is connected.
const TooManyKinds = "TooManyKinds"

// LimitError says that an API server answered with more than the manager accepts.
type LimitError struct {
	// Reason is ReasonResponseTooLarge or TooManyKinds.
	Reason string
	// Message names the request and the limit.
	Message string
	// Discovery says that it was a question about the kinds of the cluster, without
	// which nothing else can be asked.
	Discovery bool
}

// Error implements error.
func (e *LimitError) Error() string { return e.Message }

func tooLarge(request *http.Request, format string, args ...any) *LimitError {
	_, resource := resourceOf(request.URL.Path)
	return &LimitError{
		Reason:    ReasonResponseTooLarge,
		Message:   fmt.Sprintf("%s %s was answered with ", request.Method, request.URL.Path) + fmt.Sprintf(format, args...),
		Discovery: !resource,
	}
}

// limits bound the answers on one transport.
type limits struct {
	clock clock.PassiveClock
	pages *lru.Cache // bytes that the pages of a list have had, by its address
}

// maxPaged is how many lists are known that had pages: they are read one page after the other.
const maxPaged = 1000

// bound limits the body of an answer, and the time that the server asks for.
func (l *limits) bound(request *http.Request, response *http.Response) {
	if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && after > maxRetryAfter {
		response.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
	body := &boundedBody{ReadCloser: response.Body, request: request}
	response.Body = body
	query := request.URL.Query()
	list, _ := resourceOf(request.URL.Path)
	switch {
	case isWatch(request):
		body.clock, body.rate = l.clock, rate.NewLimiter(watchRate, maxList)
		if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
			body.event = &eventSize{} // client-go bounds an event in protobuf
		}
	case request.URL.Path == "/version":
		body.limit = maxVersion
	case !list || request.Method != http.MethodGet && request.Method != http.MethodDelete:
		body.limit = maxObject
	default:
		of := request.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
		var had int64 // of the pages before
		if query.Get("continue") != "" {
			known, _ := l.pages.Get(of)
			had, _ = known.(int64)
		}
		body.limit = maxList - had
		body.ended = func(read int64) { l.pages.Add(of, had+max(read, minPage)) }
	}
}

func isWatch(request *http.Request) bool {
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
	read    int64
	rate    *rate.Limiter
	clock   clock.PassiveClock
	event   *eventSize
	ended   func(read int64)
	failed  error
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(into)
	b.read += int64(n)
	switch {
	case b.limit > 0 && b.read > b.limit, b.limit < 0:
		b.failed = tooLarge(b.request, "more than %d KiB", b.most()>>10)
	case b.event != nil && b.event.add(into[:n]) > maxObject:
		b.failed = tooLarge(b.request, "an event of more than %d KiB", maxObject>>10)
	case b.rate != nil && !b.rate.AllowN(b.clock.Now(), n):
		b.failed = tooLarge(b.request, "events of more than %d KiB per second", watchRate>>10)
	default:
		return n, err
	}
	return 0, b.failed
}

// most is what the answer may have, with its earlier pages.
func (b *boundedBody) most() int64 {
	if b.ended != nil {
		return maxList
	}
	return b.limit
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	if b.ended != nil {
		b.ended(b.read)
		b.ended = nil
	}
	return b.ReadCloser.Close()
}

// eventSize counts the bytes of one JSON value in a stream of them. The decoder keeps
// them all until the value ends.
type eventSize struct {
	bytes, depth    int
	quoted, escaped bool
}

// add returns the size of the largest value that the data have a part of.
func (e *eventSize) add(data []byte) int {
	largest := 0
	for _, c := range data {
		e.bytes++
		switch {
		case e.escaped:
			e.escaped = false
		case e.quoted:
			e.escaped, e.quoted = c == '\\', c != '"'
		case c == '"':
			e.quoted = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			if e.depth--; e.depth == 0 {
				largest, e.bytes = max(largest, e.bytes), 0
			}
		}
	}
	return max(largest, e.bytes)
}
