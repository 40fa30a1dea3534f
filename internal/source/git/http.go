// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
)

const service = "git-upload-pack"

// overHTTP is a server that is asked by requests.
type overHTTP struct {
	ctx    context.Context //nolint:containedctx // of the question
	client *auth.Client
	at     string // of the repository, where redirects led
	open   []io.Closer
}

// Advertisement implements server.
func (h *overHTTP) Advertisement() (io.Reader, error) {
	answer, from, err := h.send(http.MethodGet, h.at+"/info/refs?service="+service, "")
	if err != nil {
		return nil, err
	}
	moved := *from
	moved.RawQuery = ""
	h.at = strings.TrimSuffix(moved.String(), "/info/refs")
	return answer, nil
}

// Command implements server.
func (h *overHTTP) Command(text string) (io.Reader, error) {
	answer, _, err := h.send(http.MethodPost, h.at+"/"+service, text)
	return answer, err
}

// send returns an answer that is there.
func (h *overHTTP) send(method, to, text string) (io.Reader, *url.URL, error) {
	request, err := http.NewRequestWithContext(h.ctx, method, to, strings.NewReader(text))
	if err != nil {
		return nil, nil, failure.New(failure.ArtifactInvalid, "git.url is no URL; correct it")
	}
	request.Header.Set("Git-Protocol", "version=2")
	request.Header.Set("Accept-Encoding", "identity")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-"+service+"-request")
	}
	answer, err := h.client.Send(request) //nolint:bodyclose // Close does it
	if err != nil {
		return nil, nil, err
	}
	h.open = append(h.open, answer.Body)
	switch from := answer.Request.URL; answer.StatusCode {
	case http.StatusOK:
		return answer.Body, from, nil
	case http.StatusNotFound:
		return nil, nil, noRepository(from.Host)
	}
	return nil, nil, auth.Unexpected(answer)
}

// Close implements server.
func (h *overHTTP) Close() {
	for _, answer := range h.open {
		auth.Release(answer)
	}
}
