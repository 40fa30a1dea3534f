// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"net/http"
	"time"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

// chunk is how much room is taken at first for a body, in bytes. It doubles with what has come.
const chunk = 16 << 10

// read returns the body of a request. Room is taken as bytes arrive, and not for what a client says that it sends.
func (l *limiter) read(control *http.ResponseController, s *share, r *http.Request) ([]byte, error) {
	begun := time.Now()
	if err := control.SetReadDeadline(begun.Add(l.Grace)); err != nil {
		return nil, refuse(http.StatusInternalServerError, "the connection can't have a deadline")
	}
	switch {
	case r.ContentLength < 0: // API servers and Cluster API always say it
		return nil, refuse(http.StatusLengthRequired, "a request needs a Content-Length")
	case r.ContentLength > l.Bytes:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the request is too large")
	}
	if !s.take(minWeight) {
		return nil, errNoRoom
	}
	var body []byte
	for int64(len(body)) < r.ContentLength {
		if len(body) == cap(body) {
			if jsonsize.Values(body) > l.Values {
				return nil, errTooManyValues
			}
			more := min(max(int64(cap(body)), chunk), r.ContentLength-int64(len(body)))
			if !s.take(more) {
				return nil, errNoRoom
			}
			body = append(make([]byte, 0, int64(len(body))+more), body...)
		}
		due := min(l.Grace+time.Duration(len(body))*time.Second/minRate, readTimeout)
		if err := control.SetReadDeadline(begun.Add(due)); err != nil || !s.take(0) {
			return nil, errNoRoom
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil && int64(len(body)) < r.ContentLength {
			if !s.take(0) {
				return nil, errNoRoom
			}
			return nil, refuse(http.StatusRequestTimeout, "the request doesn't come, or too slowly")
		}
	}
	if jsonsize.Values(body) > l.Values {
		return nil, errTooManyValues
	}
	return body, control.SetReadDeadline(time.Time{}) // net/http reads on, to notice that the client leaves
}

var (
	errNoRoom        = refuse(http.StatusServiceUnavailable, "there is no room: others send faster, or this client sends too much")
	errTooManyValues = refuse(http.StatusRequestEntityTooLarge, "the request has too many values")
)
