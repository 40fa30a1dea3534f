// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/base64"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/kustomization"
)

// manifests are what a management cluster needs of Cluster API besides a manager.
type manifests struct {
	crds     []*apiextensionsv1.CustomResourceDefinition
	webhooks []*unstructured.Unstructured
}

// readManifests builds Cluster API's own kustomization, for a webhook server at a URL with a certificate of ca.
func readManifests(config, url string, ca []byte) (*manifests, error) {
	objects, err := kustomization.Build(config)
	if err != nil {
		return nil, err
	}
	m := &manifests{}
	for _, obj := range objects {
		kustomization.Redirect(obj.Object, url, base64.StdEncoding.EncodeToString(ca))
		if kind := obj.GetKind(); kind == "MutatingWebhookConfiguration" || kind == "ValidatingWebhookConfiguration" {
			m.webhooks = append(m.webhooks, obj)
		}
	}
	m.crds, err = kustomization.Find[*apiextensionsv1.CustomResourceDefinition](objects, "CustomResourceDefinition")
	return m, err
}
