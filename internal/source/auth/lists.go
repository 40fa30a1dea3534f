// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"io"
	"net/http"
	"sync"
)

// Lists sends requests to a registry for lists of at most so many bytes. A list has its part of the
// memory for answers until its body is closed, as the answers that [Client.Read] reads.
type Lists struct {
	*Client
	Most int64 // bytes
}

// Do implements oras' interface of clients.
func (l Lists) Do(request *http.Request) (*http.Response, error) {
	response, err := l.Registry.Do(request)
	if err != nil {
		return nil, err
	}
	takes := l.Most
	if response.ContentLength >= 0 {
		takes = min(takes, response.ContentLength)
	}
	if err := l.answers.Acquire(request.Context(), takes); err != nil {
		Release(response.Body)
		return nil, err
	}
	response.Body = list{response.Body, sync.OnceFunc(func() { l.answers.Release(takes) })}
	return response, nil
}

// list is the body of an answer.
type list struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (l list) Close() error {
	defer l.release()
	return l.ReadCloser.Close()
}
