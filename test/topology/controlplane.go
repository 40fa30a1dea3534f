// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// provideInfrastructure has nothing to provide. But from the moment it says so, Cluster API connects to the workload
// cluster, and if there is no kubeconfig yet, it tries again only half a minute later.
func (p *Provider) provideInfrastructure(ctx context.Context, obj object) error {
	if p.Workload(obj.cluster) == nil {
		return errLater
	}
	return p.setStatus(ctx, obj, map[string]any{"initialization": map[string]any{"provisioned": true}})
}

// provideControlPlane starts a workload cluster, and upgrades it.
func (p *Provider) provideControlPlane(ctx context.Context, obj object) error {
	version, _, _ := unstructured.NestedString(obj.Object, "spec", "version")
	server, err := p.serve(ctx, obj, version)
	if err != nil {
		return err
	}
	if err := p.setEndpoint(ctx, obj, server); err != nil {
		return err
	}
	if now, _, _ := unstructured.NestedString(obj.Object, "status", "version"); now != "" && now != version {
		if err := p.upgrade(ctx, obj, server, version); err != nil {
			return err
		}
	}
	return p.setStatus(ctx, obj, map[string]any{
		"initialization":              map[string]any{"controlPlaneInitialized": true},
		"externalManagedControlPlane": true, // it has no Machines
		"version":                     version,
		"versions":                    []any{map[string]any{"version": version}},
		"conditions": []any{map[string]any{
			"type": "Available", "status": "True", "reason": "Available",
			"lastTransitionTime": obj.GetCreationTimestamp().UTC().Format(time.RFC3339),
		}},
	})
}

// serve returns the workload cluster, which is started first if need be. Its kubeconfig is there before others know of it.
func (p *Provider) serve(ctx context.Context, obj object, version string) (*apiserver.Server, error) {
	if server := p.Workload(obj.cluster); server != nil {
		return server, nil
	}
	server, err := apiserver.Start(ctx, p.dir, controlplane.Options{
		Name: obj.cluster.Name, Workers: true, Version: p.binaryVersion(obj, version), AuditPolicy: auditPolicy,
	})
	if err != nil {
		return nil, err
	}
	if err := p.createSecret(ctx, obj, obj.cluster.Name+"-kubeconfig", server.Kubeconfig()); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[obj.cluster] = server
	return server, nil
}

func (p *Provider) upgrade(ctx context.Context, obj object, server *apiserver.Server, version string) error {
	if err := p.pass(obj.cluster, ControlPlaneUpgrades); err != nil {
		return err
	}
	if !hasRealVersions(obj) {
		return nil
	}
	return server.ChangeVersion(ctx, p.binaryVersion(obj, version))
}

func hasRealVersions(obj object) bool {
	yes, _, _ := unstructured.NestedBool(obj.Object, "spec", realVersions)
	return yes
}

// binaryVersion is the version that the API server has to be linked as; empty for one that is of its code's version.
func (p *Provider) binaryVersion(obj object, version string) string {
	if !hasRealVersions(obj) || version == p.version {
		return ""
	}
	return version
}

func (p *Provider) setEndpoint(ctx context.Context, obj object, server *apiserver.Server) error {
	if _, set, _ := unstructured.NestedMap(obj.Object, "spec", "controlPlaneEndpoint"); set {
		return nil
	}
	at, err := url.Parse(server.Config().Host)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		return err
	}
	endpoint := map[string]any{"host": at.Hostname(), "port": port}
	if err := unstructured.SetNestedMap(obj.Object, endpoint, "spec", "controlPlaneEndpoint"); err != nil {
		return err
	}
	return p.client.Update(ctx, obj.Unstructured)
}

// stopControlPlane ends the workload cluster.
func (p *Provider) stopControlPlane(_ context.Context, obj object) error {
	p.mu.Lock()
	server := p.servers[obj.cluster]
	delete(p.servers, obj.cluster)
	p.mu.Unlock()
	if server == nil {
		return nil
	}
	if err := server.Stop(); err != nil {
		return fmt.Errorf("stopping the workload cluster of %s: %w", obj.cluster, err)
	}
	return nil
}
