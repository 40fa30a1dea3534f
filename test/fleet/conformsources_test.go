// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/profiles"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestConformanceOfSources has the cases pass for each source whose clusters come and go. A dead cluster is among them,
// except where another provider makes the clusters.
func TestConformanceOfSources(t *testing.T) {
	long.Test(t)
	for name, tc := range map[string]struct {
		of   func(*testing.T, *hub) fleettest.Subject
		dead bool
	}{
		"capi":                  {capiUnderTest, true},
		"profiles":              {profilesUnderTest, true},
		"secrets by a selector": {selectedUnderTest, true},
		"files":                 {func(t *testing.T, _ *hub) fleettest.Subject { return filesUnderTest(t, false) }, true},
		"trusted files":         {func(t *testing.T, _ *hub) fleettest.Subject { return filesUnderTest(t, true) }, true},
		"From":                  {fromUnderTest(fleet.From), false},
		"FromClusters":          {fromUnderTest(fleet.FromClusters), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, result := range conform(t, func(h *hub) fleettest.Subject { return tc.of(t, h) }, tc.dead) {
				if result.Err != nil {
					t.Errorf("%s: %v", result.Case, result.Err)
				}
			}
		})
	}
}

// provider returns a Subject whose clusters come from a source.
func provider(source fleet.Source, name func(string) multicluster.ClusterName) fleettest.Subject {
	p := fleet.NewProvider(quick(source))
	return fleettest.Subject{Provider: p, Scheme: scheme, ClusterName: name, Setup: func(_ context.Context, mgr mcmanager.Manager) error {
		return p.SetupWithManager(mgr.GetLocalManager())
	}}
}

// store creates an object, or replaces what it has.
func store(ctx context.Context, in client.Client, object client.Object) error {
	err := in.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	known, _ := object.DeepCopyObject().(client.Object)
	if err := in.Get(ctx, client.ObjectKeyFromObject(object), known); err != nil {
		return err
	}
	object.SetResourceVersion(known.GetResourceVersion())
	return in.Update(ctx, object)
}

func capiUnderTest(_ *testing.T, h *hub) fleettest.Subject {
	s := provider(capi.New(capi.Options{Cluster: &clusterv1.Cluster{}}), h.name)
	s.Add = func(ctx context.Context, name string, data []byte) error {
		if err := client.IgnoreAlreadyExists(h.Create(ctx, h.clusterNamed(name))); err != nil {
			return err
		}
		return store(ctx, h.Client, h.kubeconfigOf(name, data))
	}
	s.Remove = func(ctx context.Context, name string) error { return h.Delete(ctx, h.clusterNamed(name)) }
	return s
}

func profilesUnderTest(_ *testing.T, h *hub) fleettest.Subject {
	s := provider(profiles.New(profiles.Options{}), h.profileName)
	s.Add = func(ctx context.Context, name string, data []byte) error {
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}, Data: map[string][]byte{"config": data}}
		if err := store(ctx, h.Client, secret); err != nil {
			return err
		}
		p := h.profileNamed(name)
		if err := store(ctx, h.Client, p); err != nil {
			return err
		}
		return h.provide(ctx, p, "kubeconfig-secretreader", `{"name":"`+name+`","key":"config"}`, func(c *clientcmdv1.Cluster) {
			c.Server, c.CertificateAuthorityData = config.Host, config.CAData
		})
	}
	s.Remove = func(ctx context.Context, name string) error { return h.Delete(ctx, h.profileNamed(name)) }
	return s
}

// selectedUnderTest has Secrets that are told by another value than "true".
func selectedUnderTest(t *testing.T, h *hub) fleettest.Subject {
	selector, err := labels.Parse(secrets.DefaultLabel + "=true,of in (" + h.namespace + ")")
	must.Succeed(t, err)
	return h.bySecrets(provider(secrets.New(secrets.Options{Selector: selector}), h.memberName))
}

// filesUnderTest has a file for each cluster, which are found by events alone.
func filesUnderTest(t *testing.T, trusted bool) fleettest.Subject {
	dir := t.TempDir()
	o := files.Options{Paths: []string{dir}}
	if trusted {
		o = files.Options{TrustedPaths: []string{dir}}
	}
	source, err := files.New(o)
	must.Succeed(t, err)
	s := provider(source, func(name string) multicluster.ClusterName {
		return fleet.NameOf(files.Name, multicluster.ClusterName(name))
	})
	s.Add = func(_ context.Context, name string, data []byte) error {
		write(t, filepath.Join(dir, name), kubeconfigWith(t, map[string][]byte{name: data}))
		return nil
	}
	s.Remove = func(_ context.Context, name string) error { return os.Remove(filepath.Join(dir, name)) }
	return s
}

// fromUnderTest has the clusters of multicluster-runtime's kubeconfig provider.
func fromUnderTest(from func(string, multicluster.Provider, func(mcmanager.Manager) error) fleet.Source) func(*testing.T, *hub) fleettest.Subject {
	return func(_ *testing.T, h *hub) fleettest.Subject {
		theirs := kubeconfig.New(kubeconfig.Options{Namespace: h.namespace, KubeconfigSecretLabel: secrets.DefaultLabel})
		source := from("theirs", theirs, func(mgr mcmanager.Manager) error { return theirs.SetupWithManager(context.Background(), mgr) })
		return h.bySecrets(provider(source, func(name string) multicluster.ClusterName {
			return fleet.NameOf("theirs", multicluster.ClusterName(name))
		}))
	}
}
