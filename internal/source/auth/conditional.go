// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/store"
)

// rememberedAnswers is how many addresses of one host have validators.
const rememberedAnswers = 256

// conditional is a transport that asks whether the answer before is still good (RFC 9110,
// section 13), and gives it again then. It keeps answers in the store, and reads each as a
// whole.
type conditional struct {
	next    http.RoundTripper
	store   *store.Store
	whose   string              // credentials
	most    int64               // bytes of an answer
	answers *semaphore.Weighted // see [Client.Read]
	known   *lru.Cache[string, validated]
}

// validated is an answer that has validators.
type validated struct {
	digest string
	header http.Header
}

func newConditional(a *Access, next http.RoundTripper, whose string) *conditional {
	return &conditional{
		next: next, store: a.Store, whose: whose, most: a.Limits.IndexBytes, answers: a.answers,
		known: lru.New[string](rememberedAnswers, lru.One[validated]),
	}
}

// RoundTrip implements http.RoundTripper.
func (t *conditional) RoundTrip(request *http.Request) (*http.Response, error) {
	at := request.URL.String()
	scope := "answer of " + at + " to " + t.whose
	before, _ := t.known.Get(at)
	var body []byte
	kept := before.digest != ""
	if kept {
		body, kept = t.store.Get(scope, before.digest)
	}
	if kept {
		request = request.Clone(request.Context())
		for validator, condition := range map[string]string{"Etag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
			if value := before.header.Get(validator); value != "" {
				request.Header.Set(condition, value)
			}
		}
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusNotModified && kept:
		Release(response.Body)
		again := *response
		again.StatusCode, again.Status, again.Header = http.StatusOK, "200 OK", before.header.Clone()
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return &again, nil
	case response.StatusCode == http.StatusOK:
		if err := t.keep(at, scope, response); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// keep reads the answer, and notes its validators.
func (t *conditional) keep(at, scope string, response *http.Response) error {
	defer Release(response.Body)
	body, err := read(response.Request.Context(), t.answers, response.Body, response.ContentLength, "an answer of "+response.Request.URL.Host, t.most)
	if err != nil {
		return err
	}
	if response.Header.Get("Etag") != "" || response.Header.Get("Last-Modified") != "" {
		digest := artifact.DigestOf(body)
		t.store.Put(scope, digest, body)
		t.known.Put(at, validated{digest, response.Header.Clone()})
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
