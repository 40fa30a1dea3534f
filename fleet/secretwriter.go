// SPDX-License-Identifier: Apache-2.0

package fleet

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
)

// SecretWriter creates and updates Secrets. The API server answers with their metadata alone, so that large ones travel
// once. What a webhook changes of their data isn't seen.
type SecretWriter struct{ core rest.Interface }

// NewSecretWriter returns a writer with the credentials of the HTTP client.
func NewSecretWriter(config *rest.Config, by *http.Client) (*SecretWriter, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, metadataTypes
	core, err := rest.RESTClientForConfigAndClient(config, by)
	if err != nil {
		return nil, fmt.Errorf("making the client for Secrets: %w", err)
	}
	return &SecretWriter{core: core}, nil
}

// Create makes a Secret, and takes over the metadata that it has then.
func (w *SecretWriter) Create(ctx context.Context, secret client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return send(ctx, w.core.Post().VersionedParams(options, scheme.ParameterCodec), secret)
}

// Update replaces a Secret, and takes over the metadata that it has then.
func (w *SecretWriter) Update(ctx context.Context, secret client.Object, opts ...client.UpdateOption) error {
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
