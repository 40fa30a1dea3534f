// SPDX-License-Identifier: Apache-2.0

// Package secretwriter writes Secrets whose metadata alone comes back.
package secretwriter

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
)

// Writer creates and updates Secrets. The API server answers with their metadata alone, so that large ones travel
// once. What a webhook changes of their data isn't seen.
type Writer struct{ core rest.Interface }

// New returns a writer with the credentials of the HTTP client.
func New(config *rest.Config, by *http.Client) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, answer.MetadataTypes
	core, err := rest.RESTClientForConfigAndClient(config, by)
	if err != nil {
		return nil, fmt.Errorf("making the client for Secrets: %w", err)
	}
	return &Writer{core: core}, nil
}

// Create makes a Secret, and takes over the metadata that it has then.
func (w *Writer) Create(ctx context.Context, secret client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return send(ctx, w.core.Post().VersionedParams(options, scheme.ParameterCodec), secret)
}

// Update replaces a Secret, and takes over the metadata that it has then.
func (w *Writer) Update(ctx context.Context, secret client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	return send(ctx, w.core.Put().Name(secret.GetName()).VersionedParams(options, scheme.ParameterCodec), secret)
}

func send(ctx context.Context, request *rest.Request, o client.Object) error {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("a %T isn't a Secret", o)
	}
	is := &metav1.PartialObjectMetadata{}
	if err := request.Namespace(secret.Namespace).Resource("secrets").Body(secret).Do(ctx).Into(is); err != nil {
		return err
	}
	secret.ObjectMeta = is.ObjectMeta
	return nil
}
