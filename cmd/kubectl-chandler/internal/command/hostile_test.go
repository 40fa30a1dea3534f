// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// TestHostileOutput has the management cluster hold words of a workload cluster that a terminal acts on.
func TestHostileOutput(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kinds := map[string]string{"addonstacks": "AddonStack", "clusteraddons": "ClusterAddon", "providerinstances": "ProviderInstance", "clusters": "Cluster"}
		path := strings.Split(r.URL.Path, "/")
		kind, version, items := kinds[path[len(path)-1]], strings.Join(path[2:4], "/"), ""
		if kind == "ClusterAddon" {
			items = `{"metadata":{"namespace":"default","name":"prod"},"spec":{"clusterName":"prod","stacks":[{"name":"a"}]},"status":{"addons":[` +
				`{"name":"web","namespace":"web","stack":"a","phase":"Failed","reason":"ObjectRejected","message":"red \u009b31m \u202e turned"}]}}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, kind, version, items)
	}))
	defer s.Close()
	for output, says := range map[string]string{"": "red ?31m ? turned", "json": `red \u009b31m \u202e turned`, "yaml": "turned"} {
		args := []string{"status", "--server", s.URL}
		if output != "" {
			args = append(args, "-o", output)
		}
		out, _ := run(t, args...)
		if !strings.Contains(out, says) {
			t.Errorf("-o %s: %s", output, out)
		}
		for _, r := range out {
			if unicode.Is(unicode.Cf, r) || r != '\n' && unicode.IsControl(r) {
				t.Errorf("-o %s: it has %U", output, r)
			}
		}
	}
}
