// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/cluster-chandler/chandler/internal/certificates"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/kustomization"
)

const (
	crdName        = "addonstacks.addons.cluster.x-k8s.io"
	validationPath = "/validate-addons-cluster-x-k8s-io-v1beta1-addonstack"
	mutationPath   = "/mutate-addons-cluster-x-k8s-io-v1alpha1-addonstack"
	conversionPath = "/convert"
)

// world is an API server with the objects of config/shared-selfsigned, and in front of
// the replicas what a Service is: something that spreads connections.
type world struct {
	t      *testing.T
	audit  string
	client client.Client
	config *rest.Config // of the ServiceAccount

	mu       sync.Mutex
	backends []string
	turn     int
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, audit: filepath.Join(t.TempDir(), "audit.log")}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "certificates", AuditLog: w.audit})
	w.must(err)
	t.Cleanup(func() { w.must(cp.Stop()) })
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme, apiextensionsv1.AddToScheme} {
		w.must(add(scheme))
	}
	w.client, err = client.New(cp.Config(), client.Options{Scheme: scheme})
	w.must(err)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.forward(conn)
		}
	}()
	w.install(cp.Config(), int32(listener.Addr().(*net.TCPAddr).Port))
	return w
}

// install creates what the overlay makes, but for the Deployment. The Service is one
// outside of the cluster, which the API server reaches by itself.
func (w *world) install(config *rest.Config, port int32) {
	w.t.Helper()
	objects, err := kustomization.Build("../../config/shared-selfsigned")
	w.must(err)
	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment", "PodDisruptionBudget", "CustomResourceDefinition":
			continue
		case "Service":
			w.must(w.client.Create(w.t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: port}}},
			}))
			continue
		case "ServiceAccount":
			w.config = rest.CopyConfig(config)
			w.config.Impersonate = rest.ImpersonationConfig{
				UserName: "system:serviceaccount:" + o.GetNamespace() + ":" + o.GetName(), Groups: []string{"system:authenticated"},
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, webhook := range webhooks {
				w.must(unstructured.SetNestedField(webhook.(map[string]any), int64(port), "clientConfig", "service", "port"))
			}
			w.must(unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"))
		}
		w.must(w.client.Create(w.t.Context(), o))
	}
	w.must(w.client.Create(w.t.Context(), convertedCRD(port)))
}

// convertedCRD takes anything, in two versions that the webhook converts.
func convertedCRD(port int32) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        crdName,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    "addons.cluster.x-k8s.io",
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "AddonStack", ListKind: "AddonStackList", Plural: "addonstacks", Singular: "addonstack"},
			Scope:    apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", false), version("v1beta1", true)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
						Namespace: namespace, Name: serviceName, Path: ptr.To(conversionPath), Port: ptr.To(port),
					}},
				},
			},
		},
	}
}

// ask has the API server ask all kinds of webhook: it creates nothing.
func (w *world) ask() error {
	stack := &unstructured.Unstructured{}
	stack.SetAPIVersion("addons.cluster.x-k8s.io/v1alpha1")
	stack.SetKind("AddonStack")
	stack.SetNamespace(metav1.NamespaceDefault)
	stack.SetName("probe")
	return w.client.Create(w.t.Context(), stack, client.DryRunAll)
}

// replica is a process that serves webhooks, but for the process.
type replica struct {
	address string
	stop    func()
}

func (w *world) startReplica() *replica {
	w.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	port := listener.Addr().(*net.TCPAddr).Port
	w.must(listener.Close())
	source, err := certificates.New(certificates.Options{
		Config: w.config, Namespace: namespace, Service: serviceName,
		Lifetime: lifetime, AuthorityLifetime: 10 * lifetime, CRDs: []string{crdName},
	})
	w.must(err)
	server := source.Server(webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: port,
		// Each request on a connection of its own, so that each looks at the certificate.
		TLSOpts: []func(*tls.Config){source.TLSOption, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}))
	server.Register(validationPath, reviewed(admit))
	server.Register(mutationPath, reviewed(admit))
	server.Register(conversionPath, reviewed(convert))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	r := &replica{address: fmt.Sprintf("127.0.0.1:%d", port), stop: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("replica %d: %v", port, err)
		}
	})}
	w.t.Cleanup(r.stop)
	return r
}

// reviewed answers a review.
func reviewed[T any](answer func(*T)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		review := new(T)
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		answer(review)
		rw.Header().Set("Connection", "close")
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review)
	}
}

func admit(review *admissionreviewv1.AdmissionReview) {
	review.Response = &admissionreviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
}

func convert(review *apiextensionsv1.ConversionReview) {
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		fields := map[string]any{}
		_ = json.Unmarshal(object.Raw, &fields)
		fields["apiVersion"] = review.Request.DesiredAPIVersion
		raw, _ := json.Marshal(fields)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: raw})
	}
	review.Response = response
}

// pipe copies both ways until one side ends.
func pipe(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
