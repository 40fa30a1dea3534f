// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"io"
	"net/http"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
)

// tagPages asks for the pages of a list of tags. It reads a page before oras decodes it: short tags take many times the
// memory of their text.
type tagPages struct {
	*auth.Client
	left int64 // bytes that may still come
}

// Do implements oras' interface of clients.
func (p *tagPages) Do(request *http.Request) (*http.Response, error) {
	response, err := p.Registry.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer auth.Release(response.Body)
	data, err := auth.Read(response.Body, response.ContentLength, "the list of tags", p.left)
	if err == nil && jsonsize.Values(data) > maxTags {
		err = failure.TooMany("tags", maxTags)
	}
	p.left -= int64(len(data))
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, err
}
