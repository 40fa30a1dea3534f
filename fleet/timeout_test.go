// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A server that gives up a request when it was told to, as an API server does whose
// webhook hangs, is heard: it isn't taken for one that doesn't answer.
func TestServerGivesUpFirst(t *testing.T) {
	o := quick()
	o.Timeout = 2500 * time.Millisecond // of which the server's answer has a fifth
	f, s := startFleet(t, o), newServer(t)
	told := make(chan string, 1)
	s.extra = func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Query().Get("timeout")
		told <- given
		if wait, err := time.ParseDuration(given); err == nil {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Timeout", "code": 504}`))
	}
	conn := f.join(t, s)

	client, err := conn.Discovery(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = client.RESTClient().Get().AbsPath("/extra").Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) {
		t.Errorf("got %v; want the server's own answer", err)
	}
	if given := <-told; given != "2s" {
		t.Errorf("the server was given %q", given)
	}

	for name, tc := range map[string]struct{ query, want string }{
		"a shorter time":                {"?a=b&timeout=20ms", "20ms"},
		"no time":                       {"?a=b", ""},
		"a watch":                       {"?watch=true&timeout=3s", "3s"},
		"what isn't a time":             {"?timeout=soon", "soon"},
		"an argument beside a long one": {"?a=b&timeout=3s", "2s"},
	} {
		t.Run(name, func(t *testing.T) {
			request, _ := get(t, conn, s.URL+"/extra"+tc.query)
			if given := <-told; given != tc.want {
				t.Errorf("the server was given %q, want %q", given, tc.want)
			}
			if request.URL.RawQuery != tc.query[1:] {
				t.Errorf("the caller's request was changed: %s", request.URL)
			}
		})
	}
}
