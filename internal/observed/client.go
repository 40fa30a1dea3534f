// SPDX-License-Identifier: Apache-2.0

// Package observed reads what the management cluster has of Chandler, as the user: each kind once, page by page. It
// decides nothing.
package observed

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// NewClient returns a client for the kinds that commands read. It knows their resources: it asks for no discovery.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, eventsv1.AddToScheme, addonsv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace) // as all are that commands ask for
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}
