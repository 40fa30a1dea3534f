// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCompletion has a stack, and a cluster with an add-on of it.
func TestCompletion(t *testing.T) {
	lists := map[string]string{
		"addonstacks":   `{"metadata": {"namespace": "default", "name": "platform"}, "status": {"rollout": {"waves": [{"name": "canary"}]}}}`,
		"clusteraddons": `{"metadata": {"namespace": "default", "name": "prod"}, "status": {"addons": [{"name": "web"}]}}`,
	}
	kinds := map[string]string{"addonstacks": "AddonStackList", "clusteraddons": "ClusterAddonList", "providerinstances": "ProviderInstanceList"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		_, _ = fmt.Fprintf(w, `{"apiVersion": "addons.cluster.x-k8s.io/v1beta1", "kind": "%s", "items": [%s]}`, kinds[kind], lists[kind])
	}))
	t.Cleanup(s.Close)
	for line, want := range map[string]string{
		"why ": "prod platform", "why cluster/": "cluster/prod", "why prod ": "", "tree ": "platform", "events ": "prod platform",
		"pause ": "prod platform", "pause platform ": "prod platform", "get values ": "prod", "get values prod ": "web",
		"rollout approve platform ": "canary", "rollout hold platform ": "prod", "rollout hold platform prod ": "prod",
	} {
		words := strings.Split(line, " ")
		out, _ := run(t, append([]string{"__complete", "--server", s.URL}, words...)...)
		names, _, _ := strings.Cut(out, ":4")
		if got := strings.Join(strings.Fields(names), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
