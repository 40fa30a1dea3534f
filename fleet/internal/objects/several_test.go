// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

// TestSeveral sets up two sources of each kind, in two Providers of one process.
func TestSeveral(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		first, err := files.New(files.Options{Paths: []string{t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		second, err := files.New(files.Options{Name: "more-files", Paths: []string{t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		sources := []fleet.Source{
			first, second, secrets.New(secrets.Options{}), secrets.New(secrets.Options{Name: "more-secrets", Label: "other"}),
			capi.New(capi.Options{}), capi.New(capi.Options{Name: "more-clusters"}),
		}
		provider := fleet.NewProvider(fleet.Options{Sources: sources, Metrics: registry, Log: ptr.To(logr.Discard())})
		if err := provider.SetupWithManager(idle(t)); err != nil {
			t.Error(err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) == 0 || families[0].GetName() != "chandler_fleet_clusters" {
		t.Errorf("the registry has %v: %v", families, err)
	}
	twice := []fleet.Source{secrets.New(secrets.Options{Name: "same"}), capi.New(capi.Options{Name: "same"})}
	if err := fleet.NewProvider(fleet.Options{Sources: twice}).SetupWithManager(idle(t)); err == nil {
		t.Error("two sources of one name are taken")
	}
}

// idle returns a manager that isn't started.
func idle(t *testing.T) manager.Manager {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}
