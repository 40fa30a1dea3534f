// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of ClusterProperties that KEP-2149 knows. Older clusters call the first one id.k8s.io.
const (
	// PropertyID has a name of the cluster that is unique in its ClusterSet.
	PropertyID = "cluster.clusterset.k8s.io"
	// PropertyClusterSet has the name of the ClusterSet that the cluster belongs to.
	PropertyClusterSet = "clusterset.k8s.io"

	olderPropertyID = "id.k8s.io"
)

// Properties returns the ClusterProperties of the cluster (about.k8s.io, KEP-2149), by name. They are the cluster's own
// words. They are empty if the cluster has no such API. Each call asks the cluster.
func (c *Connection) Properties(ctx context.Context) (map[string]string, error) {
	mapping, err := c.GetRESTMapper().RESTMapping(schema.GroupKind{Group: "about.k8s.io", Kind: "ClusterProperty"})
	if meta.IsNoMatchError(err) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for ClusterProperties: %w", err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind("ClusterPropertyList"))
	if err := c.direct.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ClusterProperties: %w", err)
	}
	properties := make(map[string]string, len(list.Items))
	for i := range list.Items {
		value, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "value")
		properties[list.Items[i].GetName()] = value
	}
	return properties, nil
}

// ID returns how the cluster is known in its ClusterSet: its ClusterProperty [PropertyID] if that is a DNS subdomain, or else
// the UID of its namespace kube-system, as KEP-2149 recommends. A cluster says what it likes: don't trust an ID with
// anything that another cluster has. Each call asks the cluster.
func (c *Connection) ID(ctx context.Context) (string, error) {
	properties, err := c.Properties(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range []string{PropertyID, olderPropertyID} {
		if id := properties[name]; len(validation.IsDNS1123Subdomain(id)) == 0 {
			return id, nil
		}
	}
	if c.uid != "" {
		return string(c.uid), nil
	}
	system := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := c.direct.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("reading the UID of namespace kube-system: %w", err)
	}
	return string(system.UID), nil
}
