// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// NewMapper returns a mapper that needs no API server for the kinds which every instance uses. So a
// process can start, and say what is missing, before CRDs are installed.
func NewMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	discovered, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(clusterv1.GroupVersion.WithKind("Cluster"), meta.RESTScopeNamespace)
	for _, kind := range []string{"AddonStack", "ClusterAddon", "ProviderInstance"} {
		known.Add(addonsv1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	known.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	known.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	known.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, discovered}}, nil
}
