// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
)

// Annotations by which cert-manager is told to fill in a CA bundle.
const injectAnnotation = "cert-manager.io/inject-ca-from"

// certManager does what cert-manager would do with the objects: it makes the
// certificates, and fills in their CA where annotations ask for it. It returns the
// objects but for those of cert-manager's own kinds, which the API server doesn't know.
func (w *world) certManager(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	w.t.Helper()
	var rest []*unstructured.Unstructured
	for _, o := range objects {
		if o.GroupVersionKind().Group != "cert-manager.io" {
			rest = append(rest, o)
			continue
		}
		if o.GetKind() != "Certificate" {
			continue
		}
		key := o.GetNamespace() + "/" + o.GetName()
		if _, ok := w.certificates[key]; ok {
			continue
		}
		names, _, err := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
		must.Succeed(w.t, err)
		secretName, _, err := unstructured.NestedString(o.Object, "spec", "secretName")
		must.Succeed(w.t, err)
		authority, err := pki.NewAuthority("chandler")
		must.Succeed(w.t, err)
		pair, err := authority.Server("chandler", names...)
		must.Succeed(w.t, err)
		w.certificates[key] = authority.Certificate
		secret := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key, "ca.crt": authority.Certificate}}
		secret.Namespace, secret.Name = o.GetNamespace(), secretName
		w.createNamespace(o.GetNamespace())
		if err := w.Create(w.t.Context(), secret); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatal(err)
		}
	}
	for _, o := range rest {
		if certificate, ok := w.certificates[o.GetAnnotations()[injectAnnotation]]; ok {
			injectCA(o.Object, base64.StdEncoding.EncodeToString(certificate))
		}
	}
	return rest
}

// injectCA sets caBundle in every clientConfig, wherever it is: in webhook
// configurations, and in CRDs with conversion.
func injectCA(value any, bundle string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if config, ok := child.(map[string]any); ok && key == "clientConfig" {
				config["caBundle"] = bundle
			}
			injectCA(child, bundle)
		}
	case []any:
		for _, child := range v {
			injectCA(child, bundle)
		}
	}
}
