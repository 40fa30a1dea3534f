// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestRegistriesWithoutReferrers has registries that answer in their own ways what they
// don't know. Signatures are where they are without it; whether there is one is told.
func TestRegistriesWithoutReferrers(t *testing.T) {
	w := startSigned(t)
	signing.Refer(t, w.repository(t, "signed"), w.push(t, "signed"), w.key.Bundle(t, manifestDigest(t, w, "signed"), signing.SignaturePredicate))
	w.push(t, "unsigned")
	for code, known := range map[int]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
		http.StatusNotAcceptable: true, http.StatusNotImplemented: true,
		http.StatusTooManyRequests: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.server.Host})
			behind.ErrorLog = quiet
			server := serving(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/referrers/") {
					out.WriteHeader(code)
					return
				}
				behind.ServeHTTP(out, r)
			}))
			at := func(name string) reference.Reference {
				ref := w.ref(name, byKeys("cosign.pub"))
				ref.Chart.OCI.URL = "oci://" + strings.TrimPrefix(server.URL, "http://") + "/" + name
				return ref
			}
			if !known {
				expectRefused(t, get(t, w.sources(t), at("signed")), failure.SourceUnavailable, strings.TrimPrefix(server.URL, "http://"))
				return
			}
			if err := get(t, w.sources(t), at("signed")); err != nil {
				t.Error(err)
			}
			expectRefused(t, get(t, w.sources(t), at("unsigned")), failure.SignatureMissing, "nor among the manifest's referrers")
		})
	}
}
