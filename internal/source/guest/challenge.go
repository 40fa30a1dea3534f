// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"net/http"
	"net/url"
	"regexp"
	"sync"
)

// challenge is what a registry wants to see, while one request to it is made.
type challenge struct {
	mu      sync.Mutex
	basic   bool
	realm   *url.URL // of its token service
	nowhere bool     // the realm is no URL of any host
	clear   bool     // the token service has no TLS, but the registry has
	asked   bool     // the token service was
	leads   string   // the host that the token service redirects to
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
	if noted == nil {
		return t.RoundTripper.RoundTrip(request)
	}
	noted.mu.Lock()
	toTokenService := noted.realm != nil && request.URL.Host == noted.realm.Host
	noted.asked = noted.asked || toTokenService
	noted.mu.Unlock()
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	noted.mu.Lock()
	defer noted.mu.Unlock()
	if at, err := response.Location(); err == nil && toTokenService {
		noted.leads = at.Host
	}
	if response.StatusCode == http.StatusUnauthorized {
		noted.read(request.URL, response.Header.Get("WWW-Authenticate"))
	}
	return response, nil
}

// read notes what the header of an answer wants.
func (c *challenge) read(registry *url.URL, wanted string) {
	c.basic = basicChallenge.MatchString(wanted)
	if realm := bearerRealm.FindStringSubmatch(wanted); realm != nil {
		at, err := url.Parse(realm[1])
		c.realm, c.nowhere = at, err != nil || at.Host == ""
		c.clear = !c.nowhere && at.Scheme == "http" && registry.Scheme == "https"
	}
}
