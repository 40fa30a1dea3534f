// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Guest is who visits a host for a reference.
type Guest struct {
	clients
	// Ref is what the guest wants.
	Ref reference.Reference
	// Credential is what the guest may show the host.
	Credential credentials.Credential
	// Limits of what the guest takes away.
	Limits artifact.Limits

	host string
}

// Get asks for something that isn't in a registry. A missing one is an answer, too.
func (g *Guest) Get(ctx context.Context, at *url.URL, header http.Header) (*http.Response, error) {
	return g.request(ctx, http.MethodGet, at, header)
}

// Size asks how large something is, and with that, if this guest may have it. It
// is negative if the host doesn't tell.
func (g *Guest) Size(ctx context.Context, at *url.URL) (int64, error) {
	response, err := g.request(ctx, http.MethodHead, at, nil) //nolint:bodyclose // Release closes it
	if err != nil {
		return -1, err
	}
	Release(response.Body)
	if response.StatusCode != http.StatusOK {
		return -1, failure.NotPublished("there is nothing at this address; put it there, or correct the address")
	}
	return response.ContentLength, nil
}

func (g *Guest) request(ctx context.Context, method string, at *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "the source's address makes no URL; correct it")
	}
	if header != nil {
		request.Header = header
	}
	g.Authorize(request)
	response, err := g.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusNotModified:
		return response, nil
	case http.StatusUnauthorized:
		Release(response.Body)
		return nil, g.Unauthorized(response.Request.URL, response.Request.URL.Host+" answers 401 Unauthorized")
	}
	Release(response.Body)
	return nil, failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected; correct the address", response.Request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
}

// Authorize adds the credential to a request, if it goes to the source's own host.
func (g *Guest) Authorize(request *http.Request) {
	if !egress.SameOrigin(g.Ref.Base(), request.URL) {
		return
	}
	switch {
	case g.Credential.Token != "":
		request.Header.Set("Authorization", "Bearer "+g.Credential.Token)
	case g.Credential.Username != "" || g.Credential.Password != "":
		request.SetBasicAuth(g.Credential.Username, g.Credential.Password)
	}
}

// Release closes what was only read from: there is nothing left to fail.
func Release(closer io.Closer) { _ = closer.Close() }
