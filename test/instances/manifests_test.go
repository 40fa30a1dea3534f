// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// build does what `kustomize build` does.
func build(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := kustomization.Build(path)
	must.Succeed(t, err)
	return objects
}

// deploymentIn returns the only Deployment of an overlay.
func deploymentIn(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	found, err := kustomization.Find[*appsv1.Deployment](objects, "Deployment")
	must.Succeed(t, err)
	return found[0]
}

// apply does what `kubectl apply --server-side` does, with every object, as it was
// built. Only cert-manager isn't there: see certManager.
func (w *world) apply(objects []*unstructured.Unstructured) {
	w.t.Helper()
	for _, o := range w.certManager(objects) {
		//nolint:staticcheck // Client.Apply takes typed configurations, and these are of any kind
		err := w.Patch(w.t.Context(), o, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership, client.FieldValidation("Strict"))
		if err != nil {
			w.t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			w.awaitEstablished(o.GetName())
		}
	}
}

// awaitEstablished returns once discovery has each version of the CRD: an API server calls a CRD established before
// discovery shows it.
func (w *world) awaitEstablished(name string) {
	w.t.Helper()
	wait.Until(w.t, patience, "the API server is to serve a CRD that was applied", func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			return fmt.Errorf("CRD %s isn't established", name)
		}
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			if _, err := w.RESTMapper().RESTMapping(kind, version.Name); err != nil {
				return err
			}
		}
		return nil
	})
}
