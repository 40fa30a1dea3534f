// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// request is what is read of all requests. Their Cluster is of v1beta2 since Cluster API 1.13, and
// of v1beta1 before; what is read of it is the same in both.
type request struct {
	Cluster struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
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
func (h *hook) answer(r *request, ca *addonsv1.ClusterAddon, silence *upgrade.Silence, now time.Time) upgrade.Answer {
	if h.point == "" {
		if _, moves := r.Cluster.Annotations[clusterctlv1.DeleteForMoveAnnotation]; moves {
			return upgrade.Answer{} // it lives on elsewhere, with its add-ons
		}
		return upgrade.DeletionAnswerOf(ca, silence, now)
	}
	return upgrade.AnswerOf(upgrade.Question{
		Point: h.point, Version: h.version(r), Target: r.Cluster.Spec.Topology.Version, Generation: r.Cluster.Generation,
		SkipGates: r.Cluster.Annotations[addonsv1.SkipGatesAnnotation],
	}, ca, silence, now)
}

// isBefore reports whether Cluster API asks before it begins something.
func (h *hook) isBefore() bool { return h.point == addonsv1.UpgradeBeforeControlPlane || h.point == "" }
