// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net"
	"net/http"
	"slices"
)

// headers keep other pages from framing this one, and this one from loading or sending anything elsewhere.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cache-Control":                "no-store",
}

// guarded answers only what a browser asks for this page by a name of this machine: not other pages, which may have a name that leads
// here. A link to the page may be followed from elsewhere.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		host, _, err := net.SplitHostPort(r.Host)
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		follows := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
		switch {
		case err != nil || !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host):
			http.Error(w, "This page is for localhost", http.StatusForbidden)
		case origin != "" && origin != "http://"+r.Host, site != "" && site != "same-origin" && site != "none" && !follows:
			http.Error(w, "Other pages may not read this one", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "This page is read-only", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
