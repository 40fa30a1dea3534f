// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// timeoutSeconds bounds one call. An answer takes a request to the API server.
const timeoutSeconds = 5

// discover tells Cluster API which of the hooks that it knows are answered. A hook that Cluster API
// doesn't know would make all of them invalid.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	response := &hooksv1.DiscoveryResponse{}
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	newer, err := hasNewerHooks(r.Context(), s.RESTClient)
	if err != nil {
		logf.FromContext(r.Context()).Error(err, "Could not find out which hooks Cluster API has")
		response.SetStatus(hooksv1.ResponseStatusFailure)
		response.SetMessage("the schema of ClusterClass can't be read from the API server")
	}
	for _, h := range all {
		if h.since112 && !newer {
			continue
		}
		// After a part of the upgrade Cluster API continues while nobody answers: add-ons are delivered anyway, and
		// no cluster is left half upgraded.
		policy := hooksv1.FailurePolicyIgnore
		if h.point == addonsv1.UpgradeBeforeControlPlane || h.point == "" {
			policy = s.FailurePolicy
		}
		gvh := versioned(h.hook)
		response.Handlers = append(response.Handlers, hooksv1.ExtensionHandler{
			Name: h.name, RequestHook: hooksv1.GroupVersionHook{APIVersion: gvh.GroupVersion().String(), Hook: gvh.Hook},
			TimeoutSeconds: ptr.To[int32](timeoutSeconds), FailurePolicy: &policy,
		})
	}
	_ = s.Own(r.Context()) // there is an ExtensionConfig now
	reply(w, r, response)
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

// FailurePolicies are the values of --hook-failure-policy.
var FailurePolicies = []string{string(hooksv1.FailurePolicyFail), string(hooksv1.FailurePolicyIgnore)}

// request is what is read of all requests, and nothing else: any list in the metadata may have millions of entries. Their
// Cluster is of v1beta2 since Cluster API 1.13, and of v1beta1 before; what is read of it is the same in both.
type request struct {
	Cluster struct {
		Metadata struct {
			Namespace   string `json:"namespace"`
			Name        string `json:"name"`
			Generation  int64  `json:"generation"`
			Annotations struct {
				SkipGates string  `json:"addons.cluster.x-k8s.io/skip-gates"`
				Moves     *string `json:"clusterctl.cluster.x-k8s.io/delete-for-move"`
			} `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Topology struct {
				Version string `json:"version"`
			} `json:"topology"`
		} `json:"spec"`
	} `json:"cluster"`
	// To is the version of requests before something, Version that of requests after it.
	To      string `json:"toKubernetesVersion"`
	Version string `json:"kubernetesVersion"`
}

// hook is one that is answered.
type hook struct {
	name string // of the handler
	hook runtimecatalog.Hook
	// point that the hook is asked at; "" before a Cluster is deleted.
	point addonsv1.UpgradePoint
	// version is that of the request which the hook is about.
	version func(*request) string
	// since112 says that Cluster API has the hook since 1.12 only.
	since112 bool
}

// all are the hooks that are answered. Before the control plane two are asked: the first may be
// left out by Cluster API for a moment after an upgrade, the other one is asked at each step.
var all = []hook{
	{"before-cluster-upgrade", hooksv1.BeforeClusterUpgrade, addonsv1.UpgradeBeforeControlPlane, func(*request) string { return "" }, false},
	{"before-control-plane-upgrade", hooksv1.BeforeControlPlaneUpgrade, addonsv1.UpgradeBeforeControlPlane, func(r *request) string { return r.To }, true},
	{"after-control-plane-upgrade", hooksv1.AfterControlPlaneUpgrade, addonsv1.UpgradeAfterControlPlane, func(r *request) string { return r.Version }, false},
	{"after-cluster-upgrade", hooksv1.AfterClusterUpgrade, addonsv1.UpgradeAfterWorkers, func(r *request) string { return r.Version }, false},
	{"before-cluster-delete", hooksv1.BeforeClusterDelete, "", func(*request) string { return "" }, false},
}

// answer returns what is to be said to a request.
func (h *hook) answer(r *request, ca *addonsv1.ClusterAddon, lost *upgrade.LostInstance, now time.Time) upgrade.Answer {
	if h.point == "" {
		if r.Cluster.Metadata.Annotations.Moves != nil {
			return upgrade.Answer{} // it lives on elsewhere, with its add-ons
		}
		return upgrade.DeletionAnswerOf(ca, lost, now)
	}
	return upgrade.AnswerOf(upgrade.Question{
		Point: h.point, Version: h.version(r), Target: r.Cluster.Spec.Topology.Version, Generation: r.Cluster.Metadata.Generation,
		SkipGates: r.Cluster.Metadata.Annotations.SkipGates,
	}, ca, lost, now)
}
