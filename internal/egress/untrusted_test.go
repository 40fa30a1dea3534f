// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// A certificate of an authority that isn't known doesn't get better by itself.
func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client := newClient(t, Options{Origin: parse(t, server.URL), AllowLoopback: true})
	if fault := ask(t, client, server.URL); fault == nil || fault.Reason != failure.SourceUntrusted {
		t.Errorf("got %v", fault)
	}
}
