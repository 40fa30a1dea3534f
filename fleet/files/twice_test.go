// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// added is a manager that keeps what is added to it.
type added struct {
	manager.Manager
	runnables []manager.Runnable
}

func (a *added) Add(r manager.Runnable) error {
	a.runnables = append(a.runnables, r)
	return nil
}

// TestFileNamedBesideItsDirectory is read once: its contexts have no name of another file.
func TestFileNamedBesideItsDirectory(t *testing.T) {
	dir := t.TempDir()
	made, err := kubeconfig.Of(&clientcmdapi.Cluster{Server: "https://example.com"}, &clientcmdapi.AuthInfo{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), made, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := files.New(files.Options{Paths: []string{filepath.Join(dir, "b"), dir}})
	if err != nil {
		t.Fatal(err)
	}
	provider, mgr := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{source}}), &added{}
	if err := provider.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	go func() { _ = mgr.runnables[0].Start(t.Context()) }()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return provider.Synced(files.Name), nil
	}); err != nil {
		t.Fatal(err)
	}
	names := provider.Names()
	slices.Sort(names)
	want := []multicluster.ClusterName{
		fleet.NameOf(files.Name, multicluster.ClusterName(filepath.Join(dir, "a")+"+only")), fleet.NameOf(files.Name, "only"),
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s are known, want %s", names, want)
	}
}
