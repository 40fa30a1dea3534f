// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// guest is who visits a host for a reference.
type guest struct {
	clients
	ref        reference.Reference
	host       string
	credential credentials.Credential
	limits     artifact.Limits
}

// get asks for something that isn't in a registry. A missing one is an answer, too.
func (g *guest) get(ctx context.Context, at *url.URL, header http.Header) (*http.Response, error) {
	return g.request(ctx, http.MethodGet, at, header)
}

// size asks how large something is, and with that, if this guest may have it. It
// is negative if the host doesn't tell.
func (g *guest) size(ctx context.Context, at *url.URL) (int64, error) {
	response, err := g.request(ctx, http.MethodHead, at, nil) //nolint:bodyclose // release closes it
	if err != nil {
		return -1, err
	}
	release(response.Body)
	if response.StatusCode != http.StatusOK {
		return -1, notPublished("there is nothing at this address; put it there, or correct the address")
	}
	return response.ContentLength, nil
}

func (g *guest) request(ctx context.Context, method string, at *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "the source's address makes no URL; correct it")
	}
	if header != nil {
		request.Header = header
	}
	g.authorize(request)
	response, err := g.http.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusNotModified:
		return response, nil
	case http.StatusUnauthorized:
		release(response.Body)
		return nil, g.unauthorized(response.Request.URL, response.Request.URL.Host+" answers 401 Unauthorized")
	}
	release(response.Body)
	return nil, failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected; correct the address", response.Request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
}

// authorize adds the credential to a request, if it goes to the source's own host.
func (g *guest) authorize(request *http.Request) {
	if !egress.SameOrigin(g.ref.Base(), request.URL) {
		return
	}
	switch {
	case g.credential.Token != "":
		request.Header.Set("Authorization", "Bearer "+g.credential.Token)
	case g.credential.Username != "" || g.credential.Password != "":
		request.SetBasicAuth(g.credential.Username, g.credential.Password)
	}
}
