// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/pki"
)

// CoreModule is the folder, in the checkout, of the module that pins the core manager of the product's Cluster API.
const CoreModule = "hack/tools/capi"

// auditPolicy has the audit logs show what control planes, workers and ConfigMaps are asked to be.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch]
  resources:
  - {group: controlplane.cluster.x-k8s.io}
  - {group: cluster.x-k8s.io, resources: [machinedeployments]}
  - {group: "", resources: [configmaps]}
- level: Metadata
`

// installTimeout is how long an API server may take to serve new kinds.
const installTimeout = 90 * time.Second

// Options say what to start.
type Options struct {
	// Root of the checkout.
	Root string
	// Dir is a folder for all that goes away with the run.
	Dir string
	// CoreModule is the folder, below Root, of a module whose only tool is the core manager. Defaults to CoreModule.
	CoreModule string
	// CRDPaths are files or folders of CustomResourceDefinitions besides those of Cluster API and the provider.
	CRDPaths []string
	// LogDir keeps the core manager's log. Defaults to Dir.
	LogDir string
}

// Environment is a management cluster with Cluster API and a provider.
type Environment struct {
	*apiserver.Server
	// Core is Cluster API's core manager.
	Core *Core
	// Provider makes the workload clusters.
	Provider *Provider
	// Authority signs the certificates of webhooks here. Runtime extensions may use it, too.
	Authority *pki.Authority
}

// Start returns when Clusters can be made. The environment lives on when the context ends.
func Start(ctx context.Context, o Options) (*Environment, error) {
	e := &Environment{}
	if err := e.start(ctx, o); err != nil {
		e.Stop()
		return nil, fmt.Errorf("starting Cluster API: %w", err)
	}
	return e, nil
}

func (e *Environment) start(ctx context.Context, o Options) error {
	var program *coreProgram
	g, starting := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		program, err = provideCore(starting, filepath.Join(o.Root, cmp.Or(o.CoreModule, CoreModule)))
		return err
	})
	g.Go(func() (err error) {
		// With workers, as owners have to be garbage-collected.
		e.Server, err = apiserver.Start(starting, o.Dir, controlplane.Options{
			Name: "management", Workers: true, CRDPaths: o.CRDPaths, AuditPolicy: auditPolicy,
		})
		if err != nil {
			return err
		}
		return e.GrantScopes(context.WithoutCancel(ctx))
	})
	if err := g.Wait(); err != nil {
		return err
	}
	var err error
	if e.Authority, err = pki.NewAuthority("webhooks"); err != nil {
		return err
	}
	user, err := e.AddUser("capi-manager", "system:masters")
	if err != nil {
		return err
	}
	home := filepath.Join(o.Dir, "core")
	if err := WriteServerCertificate(e.Authority, home); err != nil {
		return err
	}
	if e.Core, err = newCore(program.binary, home, cmp.Or(o.LogDir, o.Dir), user.Kubeconfig); err != nil {
		return err
	}
	if err := e.install(ctx, program.config); err != nil {
		return err
	}
	if e.Provider, err = startProvider(e.Server, o.Dir); err != nil {
		return err
	}
	return e.Core.Start(ctx)
}

// install brings the kinds of Cluster API and of the provider, and then Cluster API's webhooks.
func (e *Environment) install(ctx context.Context, config string) error {
	m, err := readManifests(config, "https://"+e.Core.webhooks, e.Authority.Certificate)
	if err != nil {
		return err
	}
	crds := envtest.CRDInstallOptions{CRDs: append(m.crds, providerCRDs()...), MaxTime: installTimeout}
	if _, err := envtest.InstallCRDs(e.Config(), crds); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	for _, webhook := range m.webhooks {
		if err := e.Create(ctx, webhook); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the core manager, the provider and its workload clusters. The management cluster is left to apiserver.StopAll.
func (e *Environment) Stop() {
	if e.Core != nil && e.Core.Process != nil {
		e.Core.Kill()
	}
	if e.Provider != nil {
		e.Provider.stop()
	}
}

// WriteServerCertificate writes a certificate of a server on loopback, and its key, into a folder, under the names by
// which controller-runtime looks for them.
func WriteServerCertificate(authority *pki.Authority, dir string) error {
	pair, err := authority.Server("webhooks")
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600),
	)
}
