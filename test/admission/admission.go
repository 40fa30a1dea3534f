// SPDX-License-Identifier: Apache-2.0

// Package admission runs the webhooks of AddonStacks in the process of a test, beside an API server that calls them.
package admission

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

// Server is an API server that serves AddonStacks in both versions.
type Server struct {
	*apiserver.Server
	// StopWebhooks ends what converts and admits.
	StopWebhooks func()
}

// Start starts an API server, and the webhooks as the manager has them. Both have the configuration of the checkout at
// root, but for the address. It returns once the API server calls the webhooks.
func Start(t *testing.T, root string) *Server {
	t.Helper()
	address, err := process.FreeAddress()
	must.Succeed(t, err)
	authority, directory := Certificate(t)
	plane := apiserver.Own(t, controlplane.Options{Name: "admission", CRDPaths: []string{crdAt(t, root, "https://"+address, authority)}})
	s := &Server{Server: plane, StopWebhooks: serve(t, plane.Config(), address, directory)}
	must.Succeed(t, s.Create(t.Context(), Configuration(t, root, "https://"+address, authority)))
	s.awaitWebhooks(t)
	return s
}

// Certificate makes one of a server on loopback, in a directory as servers read it, and returns its authority.
func Certificate(t *testing.T) (authority []byte, directory string) {
	t.Helper()
	issuer, err := pki.NewAuthority("webhooks")
	must.Succeed(t, err)
	pair, err := issuer.Server("webhooks")
	must.Succeed(t, err)
	directory = t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		must.Succeed(t, os.WriteFile(filepath.Join(directory, name), data, 0o600))
	}
	return issuer.Certificate, directory
}

// crdAt writes the CRD of AddonStacks, with conversion at an address, and returns its file.
func crdAt(t *testing.T, root, address string, authority []byte) string {
	t.Helper()
	const name = "addons.cluster.x-k8s.io_addonstacks.yaml"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, file := range []string{"config/crd/bases/" + name, "config/crd/patches/webhook_in_addonstacks.yaml"} {
		read(t, filepath.Join(root, file), crd)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	must.Succeed(t, err)
	kustomization.Redirect(tree, address, base64.StdEncoding.EncodeToString(authority))
	data, err := yaml.Marshal(tree)
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(file, data, 0o600))
	return file
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	must.Succeed(t, yaml.Unmarshal(data, into))
}

// serve runs the webhooks until they are stopped, or the test ends.
func serve(t *testing.T, config *rest.Config, address, directory string) (stop func()) {
	t.Helper()
	host, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	must.Succeed(t, err)
	server, err := reviews.New(reviews.Options{Options: webhook.Options{Host: host, Port: port, CertDir: directory}})
	must.Succeed(t, err)
	scheme := runtime.NewScheme() // without v1alpha1, as the manager's
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: server,
	})
	must.Succeed(t, err)
	must.Succeed(t, (&webhooks.AddonStack{Reader: mgr.GetAPIReader()}).SetupWithManager(mgr))
	must.Succeed(t, conversion.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-stopped }) //nolint:errcheck // tests end it at any time
	t.Cleanup(stop)
	return stop
}

// Configuration returns the configuration of the webhooks with these names, all if there are none, for a server at an
// address.
func Configuration(t *testing.T, root, address string, authority []byte, names ...string) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	read(t, filepath.Join(root, "config/webhook/manifests.yaml"), configuration)
	configuration.Webhooks = slices.DeleteFunc(configuration.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return len(names) > 0 && !slices.Contains(names, w.Name)
	})
	if len(configuration.Webhooks) < max(len(names), 1) {
		t.Fatalf("config/webhook doesn't have all of %s", names)
	}
	for i := range configuration.Webhooks {
		hook := &configuration.Webhooks[i]
		hook.ClientConfig = admissionv1.WebhookClientConfig{CABundle: authority, URL: ptr.To(address + *hook.ClientConfig.Service.Path)}
	}
	return configuration
}

// awaitWebhooks waits until the API server converts, and asks about AddonStacks.
func (s *Server) awaitWebhooks(t *testing.T) {
	t.Helper()
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonsv1alpha1.GroupVersion.String(), "kind": "AddonStack", "metadata": map[string]any{"name": "probe", "namespace": "default"},
		"spec": map[string]any{
			"clusterSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "env", "operator": "Near"}}},
			"addons":          []any{map[string]any{"name": "a", "chart": map[string]any{"path": "a"}}},
		},
	}}
	wait.Until(t, time.Minute, "the API server is to call the webhooks", func() error {
		err := s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "validation.addonstack") {
			return fmt.Errorf("validation isn't called: %w", err)
		}
		return nil
	})
}
