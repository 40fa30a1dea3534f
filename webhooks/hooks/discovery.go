// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/instance/skew"
)

// timeoutSeconds bounds one call. An answer takes a request to the API server.
const timeoutSeconds = 5

// discover tells Cluster API which hooks are answered: those that it knows. One that it doesn't
// know would make all of them invalid.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	response := &hooksv1.DiscoveryResponse{}
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	newer, err := hasNewerHooks(r.Context(), s.RESTClient)
	if err != nil {
		logf.FromContext(r.Context()).Error(err, "Could not find out which hooks Cluster API has")
		response.SetStatus(hooksv1.ResponseStatusFailure)
		response.SetMessage("the schema of ClusterClass can't be read from the API server")
	}
	for i := range all {
		h := &all[i]
		if h.since112 && !newer {
			continue
		}
		gvh, err := s.catalog.GroupVersionHook(h.hook)
		if err != nil {
			continue // it was registered, so it is known
		}
		response.Handlers = append(response.Handlers, hooksv1.ExtensionHandler{
			Name: h.name, RequestHook: hooksv1.GroupVersionHook{APIVersion: gvh.GroupVersion().String(), Hook: gvh.Hook},
			TimeoutSeconds: ptr.To[int32](timeoutSeconds), FailurePolicy: ptr.To(s.failurePolicyOf(h)),
		})
	}
	reply(w, r, response)
}

// failurePolicyOf returns what Cluster API does while nobody answers. After a part of the upgrade it
// goes on: add-ons are delivered anyway, and no cluster is left half upgraded.
func (s *Server) failurePolicyOf(h *hook) hooksv1.FailurePolicy {
	if h.isBefore() {
		return s.FailurePolicy
	}
	return hooksv1.FailurePolicyIgnore
}

// hasNewerHooks reports whether the API server has the ClusterClass of Cluster API 1.12, which
// brought chained upgrades and the hooks for their steps.
func hasNewerHooks(ctx context.Context, server rest.Interface) (bool, error) {
	type ClusterClass struct {
		Spec struct {
			KubernetesVersions []string `json:"kubernetesVersions"`
		} `json:"spec"`
	}
	gap, err := skew.Check(ctx, server, clusterv1.GroupVersion, ClusterClass{})
	if err != nil {
		return false, fmt.Errorf("looking for the hooks of Cluster API: %w", err)
	}
	return gap.Empty(), nil
}

// newCatalog returns the catalog of all hooks that there are.
func newCatalog() (*runtimecatalog.Catalog, error) {
	catalog := runtimecatalog.New()
	if err := hooksv1.AddToCatalog(catalog); err != nil {
		return nil, fmt.Errorf("building the catalog of hooks: %w", err)
	}
	return catalog, nil
}

// FailurePolicies are the values of --hook-failure-policy.
func FailurePolicies() []string {
	return []string{string(hooksv1.FailurePolicyFail), string(hooksv1.FailurePolicyIgnore)}
}

// IsFailurePolicy reports whether a text is one of them.
func IsFailurePolicy(text string) bool { return slices.Contains(FailurePolicies(), text) }
