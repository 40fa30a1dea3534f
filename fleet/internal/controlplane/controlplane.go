// SPDX-License-Identifier: Apache-2.0

// Package controlplane has an API server for the examples of the module, which tests run. No program links it.
package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

var (
	server  = &envtest.Environment{}
	started = sync.OnceValues(server.Start)
)

// Main runs the tests of a package, and its examples if KUBEBUILDER_ASSETS names a kube-apiserver and an etcd.
func Main(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "SKIPPED: examples, as KUBEBUILDER_ASSETS names no kube-apiserver and etcd")
		must(flag.Set("test.skip", "^Example"))
	}
	code := m.Run()
	must(server.Stop())
	os.Exit(code)
}

// Config returns the config of an API server that grants it everything.
func Config() *rest.Config {
	config, err := started()
	must(err)
	return config
}

// Create makes objects.
func Create(scheme *runtime.Scheme, objects ...client.Object) {
	c, err := client.New(Config(), client.Options{Scheme: scheme})
	must(err)
	for _, object := range objects {
		must(c.Create(context.Background(), object))
	}
}

// Define makes a namespaced kind, whose objects may have anything in them.
func Define(group, version, kind, plural string) {
	free := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	_, err := envtest.InstallCRDs(Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: free},
			}},
		},
	}}})
	must(err)
}

// Run runs a manager with a provider until a cluster is engaged or a minute has passed, and prints the cluster's state.
// A nil scheme is that of client-go.
func Run(provider *fleet.Provider, of *runtime.Scheme, name multicluster.ClusterName) {
	if of == nil {
		of = scheme.Scheme
	}
	mgr, err := mcmanager.New(Config(), provider, manager.Options{
		Scheme: of, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	must(err)
	must(provider.SetupWithManager(mgr.GetLocalManager()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	_ = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := mgr.GetCluster(ctx, name)
		return err == nil, nil
	})
	fmt.Printf("%s: %s\n", name, provider.State(name).Message)
	cancel()
	must(<-ended)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
