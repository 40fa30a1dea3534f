// SPDX-License-Identifier: Apache-2.0

package auth

import "net/http"

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
	body, err := l.take(request.Context(), response.Body, takes)
	if err != nil {
		return nil, err
	}
	response.Body = body
	return response, nil
}
