// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/egress"
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
	if strings.Contains(request.URL.Path, "/blobs/") { // may be anything
		return response, nil
	}
	return response, refusePage(response)
}

// explain says in own terms why the library didn't answer a challenge.
func (c *registryClient) explain(noted *challenge, err error) error {
	noted.mu.Lock()
	defer noted.mu.Unlock()
	var known *egress.Fault
	switch {
	case noted.nowhere: // whatever became of asking there
		return errNoTokenService
	case errors.As(err, &known), errors.Is(err, auth.ErrBasicCredentialNotFound):
		return err
	case noted.basic && (c.credential.Username == "" || c.credential.Password == ""):
		return errPasswordWanted
	case noted.realm != nil && !noted.asked && strings.Contains(err.Error(), "bearer realm host"): // it has no type
		return privateTokenService(noted.realm.Host)
	}
	return err
}

// challenge is what a registry wants to see, while one request to it is made.
type challenge struct {
	mu      sync.Mutex
	basic   bool
	realm   *url.URL // of its token service
	nowhere bool     // the realm is no URL of any host
	asked   bool     // the token service was
}

type challengeKey struct{}

// challengeNotes notes the challenges of the answers that pass.
type challengeNotes struct{ http.RoundTripper }

var (
	basicChallenge = regexp.MustCompile(`(?i)^basic\b`)
	bearerRealm    = regexp.MustCompile(`(?i)^bearer\b.*\brealm="([^"]*)"`)
)

// RoundTrip implements http.RoundTripper.
func (t challengeNotes) RoundTrip(request *http.Request) (*http.Response, error) {
	noted, _ := request.Context().Value(challengeKey{}).(*challenge)
	if noted != nil {
		noted.mu.Lock()
		noted.asked = noted.asked || noted.realm != nil && request.URL.Host == noted.realm.Host
		noted.mu.Unlock()
	}
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil && noted != nil && response.StatusCode == http.StatusUnauthorized {
		noted.mu.Lock()
		defer noted.mu.Unlock()
		wanted := response.Header.Get("WWW-Authenticate")
		noted.basic = basicChallenge.MatchString(wanted)
		if realm := bearerRealm.FindStringSubmatch(wanted); realm != nil {
			at, err := url.Parse(realm[1])
			noted.realm, noted.nowhere = at, err != nil || at.Host == ""
		}
	}
	return response, err
}
