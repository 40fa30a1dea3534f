// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestRegistriesWithoutReferrers has registries that answer in their own ways what they
// don't know. Signatures are where they are without it; whether there is one is told.
func TestRegistriesWithoutReferrers(t *testing.T) {
	w := startSigned(t)
	digest := w.push(t, "signed")
	signing.Refer(t, w.repository(t, "signed"), digest, w.key.Bundle(t, digest, signing.SignaturePredicate))
	w.push(t, "unsigned")
	for code, known := range map[int]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
		http.StatusNotAcceptable: true, http.StatusNotImplemented: true,
		http.StatusTooManyRequests: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.server.Host})
			behind.ErrorLog = quiet
			server := serving(t, func(out http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/referrers/") {
					out.WriteHeader(code)
					return
				}
				behind.ServeHTTP(out, r)
			})
			reasons := map[string]string{"signed": "", "unsigned": failure.SignatureMissing}
			if !known {
				reasons = map[string]string{"signed": failure.SourceUnavailable}
			}
			for name, reason := range reasons {
				ref := w.ref(name, byKeys("cosign.pub"))
				ref.Chart.OCI.URL = "oci://" + hostOf(server) + "/" + name
				expectRefused(t, get(t, w.sources(t), ref), reason)
			}
		})
	}
}
