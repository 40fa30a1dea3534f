// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Scheme has the kinds of Kubernetes, Cluster API, clusterctl and Chandler.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, runtimev1.AddToScheme, clusterctlv1.AddToScheme,
		inventoryv1alpha1.AddToScheme, addonsv1.AddToScheme, addonsv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// ClusterAPICRDs are the files of some of Cluster API's kinds, as in "clusters", of the version in go.mod.
func ClusterAPICRDs(ctx context.Context, kinds ...string) ([]string, error) {
	module, err := ModuleDir(ctx, "sigs.k8s.io/cluster-api")
	if err != nil {
		return nil, fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	var files []string
	for _, kind := range kinds {
		files = append(files, filepath.Join(module, "core/config/crd/bases/cluster.x-k8s.io_"+kind+".yaml"))
	}
	return files, nil
}

// ModuleDir is the folder of a module, of the version in go.mod.
func ModuleDir(ctx context.Context, path string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("finding module %s: %w", path, err)
	}
	return strings.TrimSpace(string(dir)), nil
}
