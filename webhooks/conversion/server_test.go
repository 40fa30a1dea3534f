// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/webhooks"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

const crdFile = "addons.cluster.x-k8s.io_addonstacks.yaml"

// startServers starts an API server that serves both versions, and the webhooks as
// the manager has them; both with the project's own configuration, but for the
// address.
func startServers(t *testing.T) (c client.Client, stopWebhooks func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	authority, certificates := serveWith(t)
	address := fmt.Sprintf("https://127.0.0.1:%d", port)

	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "conversion", CRDPaths: []string{crdConvertedAt(t, address, authority)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })

	scheme := runtime.NewScheme()
	if err := addonsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server, err := reviews.New(reviews.Options{Options: webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates}})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
		Scheme:        scheme, // without v1alpha1, as the manager's
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: server,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&webhooks.AddonStack{Reader: mgr.GetAPIReader()}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	if err := conversion.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stopWebhooks = sync.OnceFunc(func() { cancel(); <-stopped })
	t.Cleanup(stopWebhooks)

	clientScheme := testScheme(t)
	for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(clientScheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err = client.New(cp.Config(), client.Options{Scheme: clientScheme})
	if err != nil {
		t.Fatal(err)
	}
	configure(t, c, address, authority)
	return c, stopWebhooks
}

// serveWith makes a serving certificate, and the directory the server reads it from.
func serveWith(t *testing.T) (authority []byte, dir string) {
	t.Helper()
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": authority, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority, dir
}

// crdConvertedAt writes the project's CRD with the patch of config/crd, and the
// address in place of the Service.
func crdConvertedAt(t *testing.T, address string, authority []byte) string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, path := range []string{"../../config/crd/bases/" + crdFile, "../../config/crd/patches/webhook_in_addonstacks.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, crd); err != nil {
			t.Fatal(err)
		}
	}
	service := crd.Spec.Conversion.Webhook.ClientConfig.Service
	crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{CABundle: authority, URL: new(address + *service.Path)}
	data, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), crdFile)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// configure installs the project's webhook configuration.
func configure(t *testing.T, c client.Client, address string, authority []byte) {
	t.Helper()
	manifests, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.Unmarshal(manifests, configuration); err != nil {
		t.Fatal(err)
	}
	for i := range configuration.Webhooks {
		path := *configuration.Webhooks[i].ClientConfig.Service.Path
		configuration.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{CABundle: authority, URL: new(address + path)}
	}
	if err := c.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
}
