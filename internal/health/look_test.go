// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/test/held"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPodsCount sees that the pods of a workload count until they are evaluated.
func TestPodsCount(t *testing.T) {
	web := deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })
	for name, look := range map[string]func(context.Context, client.Client) error{
		"of one that is ready": func(ctx context.Context, c client.Client) error {
			key := record.ObjectKey{Group: "apps", Kind: "Deployment", Namespace: web.Namespace, Name: web.Name}
			_, _, _, err := health.Look(ctx, c, key, readiness.Checks{}, health.Before{})
			return err
		},
		"of one that is to be": func(ctx context.Context, c client.Client) error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(web)
			must.Succeed(t, err)
			_, err = health.LookAtPods(ctx, c, &unstructured.Unstructured{Object: fields})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			arrive := held.Answers(t)
			c := fake.NewClientBuilder().WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)).WithObjects(web.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					arrive(ctx)
					return c.List(ctx, list, o...)
				},
			}).Build()
			must.Succeed(t, look(t.Context(), c))
		})
	}
}
