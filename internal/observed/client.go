// SPDX-License-Identifier: Apache-2.0

// Package observed reads what the management cluster has of Chandler, as the user: each kind once, page by page. It
// decides nothing.
package observed

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// NewClient returns a client for the kinds that commands read. It knows their resources: it asks for no discovery.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, eventsv1.AddToScheme, addonsv1.AddToScheme, clusterv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace // as almost all are that commands ask for
		if kind.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// Workload returns a client of a workload cluster, by a kubeconfig file, or for "" by the kubeconfig Secret of the cluster.
// Its user has to be allowed to read that. Answers have the limits and timeouts that the manager has for them.
func Workload(ctx context.Context, c client.Reader, ca *addonsv1.ClusterAddon, file string) (client.WithWatch, error) {
	k, err := kubeconfigOf(ctx, c, ca, file)
	if err != nil {
		return nil, err
	}
	config, err := fleet.ConfigFor(k, fleet.Options{AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	return NewClient(config)
}

// kubeconfigOf returns what the user's file says, which is trusted, or the kubeconfig Secret of the cluster.
func kubeconfigOf(ctx context.Context, c client.Reader, ca *addonsv1.ClusterAddon, file string) (*kubeconfig.Config, error) {
	if file != "" {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return nil, err
		}
		return kubeconfig.Trust(config)
	}
	key := client.ObjectKey{Namespace: ca.Namespace, Name: ca.Spec.ClusterName}
	if ref := ca.Spec.ClusterRef; ref == nil {
		key.Name += "-kubeconfig" // a Cluster's
	} else if ref.Kind != addonsv1.KindSecret {
		return nil, fmt.Errorf("the kubeconfig of a %s is nowhere to be read: name it with --workload-kubeconfig", ref.Kind)
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", ca.Name, err)
	}
	data := cmp.Or(string(secret.Data["value"]), string(secret.Data["kubeconfig"])) // the first is Cluster API's key
	k, err := kubeconfig.Parse([]byte(data), kubeconfig.Policy{AllowInsecureTLS: true, AllowLoopback: true})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return k, nil
}
