// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// InProcess is the [Renderer] of a command, which has no workers.
type InProcess struct{}

// Values implements [Renderer]. It refuses text that would take much memory, which a worker's limit ends elsewhere.
func (InProcess) Values(_ context.Context, req job.Values) (map[string]any, error) {
	if err := yamllimit.Manifest.Check(req.Text); err != nil {
		return nil, err
	}
	return values.Read(&req)
}

// Names implements [Renderer].
func (InProcess) Names(_ context.Context, req job.Names) ([]string, error) {
	return values.RenderNames(&req, job.MostMade)
}

// Template implements [Renderer].
func (InProcess) Template(_ context.Context, req job.Template) (string, error) {
	text, err := values.RenderTemplate(&req, job.MostMade)
	if err != nil {
		return "", err
	}
	return *text, nil
}

// ObjectsBy returns the Object of a Reader that reads with a client, whose RESTMapper knows all kinds.
func ObjectsBy(c client.Client, namespace string) func(context.Context, string, clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, root string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
		is := &unstructured.Unstructured{}
		mapping, err := c.RESTMapper().RESTMapping(ref.GroupKind())
		if err == nil {
			is.SetGroupVersionKind(mapping.GroupVersionKind)
			err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, is)
		}
		if err != nil {
			return nil, fmt.Errorf("reading .%s, %s %s: %w", root, ref.Kind, ref.Name, err)
		}
		return is, nil
	}
}
