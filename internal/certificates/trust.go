// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// trust keeps the CA bundles of the objects by which the API server finds the webhooks.
type trust struct {
	secrets corev1client.SecretInterface
	objects client.Client
	service serviceKey
	targets []target
	overlap time.Duration
	clock   clock.Clock
}

// authority reads the certificate of the authority as it is now.
func (t *trust) authority(ctx context.Context) (*x509.Certificate, error) {
	secret, err := t.secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the authority: %w", err)
	}
	certificates, err := cert.ParseCertsPEM(secret.Data["ca.crt"])
	if err != nil {
		return nil, fmt.Errorf("reading the authority from Secret %s: %w", SecretName, err)
	}
	return certificates[0], nil
}

// announce has all objects trust the authority. Those that trust it already aren't
// written; those that don't exist are announced to when they come.
func (t *trust) announce(ctx context.Context, ca *x509.Certificate) error {
	var errs []error
	for _, target := range t.targets {
		// Another replica may write the same at the same time.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return t.announceTo(ctx, target, ca) })
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("writing the CA bundle of %s %s: %w", target.kind.Kind, target.name, err))
		}
	}
	return errors.Join(errs...)
}

func (t *trust) announceTo(ctx context.Context, target target, ca *x509.Certificate) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(target.kind)
	if err := t.objects.Get(ctx, client.ObjectKey{Name: target.name}, object); err != nil {
		return err
	}
	before := object.DeepCopy()
	for _, config := range clientConfigs(object, t.service) {
		encoded, _ := config["caBundle"].(string)
		known, _ := base64.StdEncoding.DecodeString(encoded) // the API server takes nothing else
		bundle, err := bundleWith(ca, known, t.clock.Now(), t.overlap)
		if err != nil {
			return err
		}
		config["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
	}
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	// What was read must be what is patched, or else this is a conflict.
	if err := t.objects.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Announced the webhooks' authority", "kind", target.kind.Kind, "name", target.name, "expires", ca.NotAfter)
	return nil
}

// announceAgain announces the present authority, if there is one yet.
func (t *trust) announceAgain(ctx context.Context) error {
	ca, err := t.authority(ctx)
	if apierrors.IsNotFound(err) {
		return nil // whoever makes it announces it
	}
	if err != nil {
		return err
	}
	return t.announce(ctx, ca)
}

var (
	configurationKind = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind      = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
	crdKind           = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// target is a cluster-wide object with CA bundles.
type target struct {
	kind     schema.GroupVersionKind
	resource string
	name     string
}

func targets(crds []string) []target {
	all := []target{
		{kind: configurationKind, resource: "validatingwebhookconfigurations", name: ConfigurationName},
		{kind: mutatingKind, resource: "mutatingwebhookconfigurations", name: MutatingConfigurationName},
	}
	for _, name := range crds {
		all = append(all, target{kind: crdKind, resource: "customresourcedefinitions", name: name})
	}
	return all
}

type serviceKey struct{ namespace, name string }

// clientConfigs returns where the object says how the API server is to reach the Service. What goes
// elsewhere isn't served with our certificate.
func clientConfigs(object *unstructured.Unstructured, service serviceKey) []map[string]any {
	conversion, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook")
	webhooks, _ := object.Object["webhooks"].([]any)
	var all []map[string]any
	for _, webhook := range append(webhooks[:len(webhooks):len(webhooks)], conversion) {
		fields, _ := webhook.(map[string]any)
		config, _ := fields["clientConfig"].(map[string]any)
		namespace, _, _ := unstructured.NestedString(config, "service", "namespace")
		name, _, _ := unstructured.NestedString(config, "service", "name")
		if (serviceKey{namespace: namespace, name: name}) == service {
			all = append(all, config)
		}
	}
	return all
}

// bundleWith returns the CA bundle that trusts this authority. The certificates that were in
// the bundle before stay for as long as something signed by them can be in use: until
// overlap after the authority was made.
func bundleWith(ca *x509.Certificate, before []byte, now time.Time, overlap time.Duration) ([]byte, error) {
	trusted := []*x509.Certificate{ca}
	if now.Before(ca.NotBefore.Add(overlap)) {
		others, err := cert.ParseCertsPEM(before)
		if err != nil {
			others = nil // a placeholder, or nothing at all
		}
		for _, other := range others {
			if now.Before(other.NotAfter) && !slices.ContainsFunc(trusted, other.Equal) {
				trusted = append(trusted, other)
			}
		}
	}
	bundle, err := cert.EncodeCertificates(trusted...)
	return bundle, err
}
