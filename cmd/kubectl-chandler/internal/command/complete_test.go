// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCompletion has a stack with a revision, and a cluster with an add-on of it.
func TestCompletion(t *testing.T) {
	const own, stack = "addons.cluster.x-k8s.io/v1beta1", `{"apiVersion": "addons.cluster.x-k8s.io/v1beta1", "kind": "AddonStack",
		"metadata": {"namespace": "default", "name": "platform", "uid": "1"}, "spec": {"addons": [{"name": "web"}, {"name": "dns"}]}, "status": {"rollout": {"waves": [{"name": "canary"}]}}}`
	lists := map[string][]string{ // by resource: apiVersion, kind, items
		"addonstacks":       {own, "AddonStackList", stack},
		"clusteraddons":     {own, "ClusterAddonList", `{"metadata": {"namespace": "default", "name": "prod"}, "status": {"addons": [{"name": "web"}]}}`},
		"providerinstances": {own, "ProviderInstanceList", ""},
		"namespaces":        {"v1", "NamespaceList", `{"metadata": {"name": "team-a"}}, {"metadata": {"name": "team-b"}}`},
		"controllerrevisions": {"apps/v1", "ControllerRevisionList", `{"metadata": {"namespace": "default", "name": "platform-1", "ownerReferences":
			[{"apiVersion": "addons.cluster.x-k8s.io/v1beta1", "kind": "AddonStack", "name": "platform", "uid": "1", "controller": true}]}, "revision": 1}`},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/addonstacks/platform") {
			_, _ = fmt.Fprint(w, stack)
			return
		}
		is, found := lists[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion": %q, "kind": %q, "items": [%s]}`, is[0], is[1], is[2])
	}))
	t.Cleanup(s.Close)
	for line, want := range map[string]string{
		"why ": "prod platform", "why cluster/": "cluster/prod", "why prod ": "", "tree ": "platform", "events ": "prod platform",
		"pause ": "prod platform", "pause platform ": "prod platform", "get values ": "prod", "get values prod ": "web",
		"rollout approve platform ": "canary", "rollout hold platform ": "prod", "rollout hold platform prod ": "prod",
		"status -n ": "team-a team-b", "get values prod web -n ": "team-a team-b", "ui --namespace ": "team-a team-b", "status -o ": "json yaml wide",
		"why addon/": "addon/web", "look platform cluster/": "cluster/prod", "history stack/": "stack/platform", "rollout approve platform canary ": "canary",
		"undo platform --addon ": "web dns", "undo platform --to-revision ": "platform-1", "undo --to-revision ": "", "undo other --addon ": "", "undo other --to-revision ": "",
		"plan platform --revision ": "platform-1", "rollout reject platform --revision ": "platform-1", "migrate ": "caaph flux helm", "migrate caaph ": "",
		"migrate helm --generated-values ": "keep renew",
	} {
		words := strings.Split(line, " ")
		out, _ := run(t, append([]string{"__complete", "--server", s.URL}, words...)...)
		names, _, _ := strings.Cut(out, ":4")
		if got := strings.Join(strings.Fields(names), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
