// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/webpage"
)

// errPasswordWanted says that a registry wants username and password, and the
// credentials are others.
var errPasswordWanted = errors.New("username and password are wanted")

// errNoTokenService says that a registry refers to a token service that is nowhere.
var errNoTokenService = errors.New("no token service")

// privateTokenService is the host of a token service that the registry client doesn't
// ask: it is another one than the registry's, at a private address. A registry could
// name any host of the network so, and have credentials sent there.
type privateTokenService string

// Error implements error.
func (at privateTokenService) Error() string { return "token service at " + string(at) }

// clearTokenService is the host of a token service without TLS, which no registry with
// TLS may refer to: what it is shown could be read on the way.
type clearTokenService string

// Error implements error.
func (at clearTokenService) Error() string { return "token service without TLS at " + string(at) }

// movedTokenService is a token service that redirects to where the registry client
// sends no credentials.
type movedTokenService struct{ from, to string }

// Error implements error.
func (at movedTokenService) Error() string {
	return "token service at " + at.from + " redirects to " + at.to
}

// tokenServiceError is what a token service answers. It is shown credentials, on
// whichever host it is.
type tokenServiceError struct{ error }

// Unwrap returns the answer.
func (e tokenServiceError) Unwrap() error { return e.error }

// registryClient asks a registry. It knows in its own terms what the library tells in
// texts only, and takes no web page for an answer.
type registryClient struct {
	client     *auth.Client
	credential credentials.Credential
}

// newRegistryClient makes one that sends its requests with the client.
func newRegistryClient(through *http.Client, host string, credential credentials.Credential) *registryClient {
	noting := *through
	noting.Transport = challengeNotes{through.Transport}
	return &registryClient{
		client: &auth.Client{
			Client:     &noting,
			Cache:      auth.NewCache(),
			Credential: auth.StaticCredential(host, registryCredential(credential)),
		},
		credential: credential,
	}
}

// Do implements the registry client of oras.
func (c *registryClient) Do(request *http.Request) (*http.Response, error) {
	noted := &challenge{}
	response, err := c.client.Do(request.WithContext(context.WithValue(request.Context(), challengeKey{}, noted)))
	if err != nil {
		return nil, c.explain(noted, err)
	}
	if directory, digest := path.Split(request.URL.Path); strings.HasSuffix(directory, "/blobs/") { // may be anything
		return response, webpage.RefuseFor(digest, response)
	}
	if err := refuseLink(response); err != nil {
		return nil, err
	}
	return response, webpage.Refuse(response)
}

// explain says in own terms why the library didn't answer a challenge.
func (c *registryClient) explain(noted *challenge, err error) error {
	noted.mu.Lock()
	defer noted.mu.Unlock()
	var known *egress.Fault
	var followed *url.Error
	by := answeredBy(err)
	switch {
	case noted.nowhere: // whatever became of asking there
		return errNoTokenService
	case noted.clear:
		return clearTokenService(noted.realm.Host)
	case noted.asked && by != nil && by.Host == noted.realm.Host:
		return tokenServiceError{err}
	case errors.As(err, &known), errors.Is(err, auth.ErrBasicCredentialNotFound):
		return err
	case noted.leads != "" && errors.As(err, &followed): // the library doesn't follow
		return movedTokenService{noted.realm.Host, noted.leads}
	case noted.basic && (c.credential.Username == "" || c.credential.Password == ""):
		return errPasswordWanted
	case noted.realm != nil && !noted.asked && strings.Contains(err.Error(), "bearer realm host"): // it has no type
		return privateTokenService(noted.realm.Host)
	}
	return err
}

// refuseLink refuses a list that goes on at another host, which isn't asked.
func refuseLink(response *http.Response) error {
	link, isLink := strings.CutPrefix(response.Header.Get("Link"), "<")
	link, _, ends := strings.Cut(link, ">")
	if !isLink || !ends || response.StatusCode != http.StatusOK {
		return nil
	}
	at := response.Request.URL
	next, err := at.Parse(link)
	if err != nil || egress.SameOrigin(at, next) {
		return nil //nolint:nilerr // what is no link leads nowhere
	}
	Release(response.Body)
	return failure.New(failure.SourceUnavailable, "%s says that its list goes on at %s://%s, which isn't asked. "+
		"Have the registry name its own address; if a reverse proxy is before it, that has to pass on the host's name and the scheme", at.Host, next.Scheme, next.Host)
}
