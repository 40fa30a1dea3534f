// SPDX-License-Identifier: Apache-2.0

package egress_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestAnswerBrokenOff has a server that ends the connection, or the stream, in the
// middle of its answer.
func TestAnswerBrokenOff(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, "the beginning")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			origin, err := url.Parse(server.URL)
			must.Succeed(t, err)
			client, err := egress.New(egress.Options{
				Origin: origin, AllowLoopback: true,
				CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			})
			must.Succeed(t, err)
			response, err := client.Get(server.URL)
			must.Succeed(t, err)
			defer response.Body.Close()
			if response.Proto != name {
				t.Fatalf("the test is about %s, not %s", name, response.Proto)
			}
			_, err = io.ReadAll(response.Body)
			fault := egress.Explain(t.Context(), "h", err)
			if fault == nil || fault.Reason != failure.SourceUnavailable || !strings.Contains(fault.Error(), "broke off") {
				t.Errorf("%v is explained as %v", err, fault)
			}
		})
	}
}
