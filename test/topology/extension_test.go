// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeserver "sigs.k8s.io/cluster-api/exp/runtime/server"

	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/topology"
)

// extension is a runtime extension that writes down who asks, and blocks what a test wants blocked.
type extension struct {
	stop func()

	mu      sync.Mutex // guards what follows
	blocked map[call]string
	asked   map[call]int
	order   map[string][]string
}

// call is a hook that is asked for a Cluster.
type call struct{ cluster, hook string }

// block has a hook of a Cluster answer that it has to wait. From now on its calls are counted.
func (e *extension) block(cluster, hook, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.blocked[call{cluster, hook}] = message
	e.asked[call{cluster, hook}] = 0
}

// open has it answer that Cluster API may go on.
func (e *extension) open(cluster, hook string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.blocked, call{cluster, hook})
}

// count is how often a hook was asked for a Cluster.
func (e *extension) count(cluster, hook string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[call{cluster, hook}]
}

// calls are the hooks of a Cluster in the order in which they were asked first; Cluster API may ask again. Each says what
// the request did, and what control plane and workers were to be at that moment.
func (e *extension) calls(cluster string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.order[cluster])
}

// answer is that of all hooks.
func (e *extension) answer(ctx context.Context, cluster, hook, version string, response hooksv1.ResponseObject) {
	state, err := readState(ctx, cluster)
	if err != nil {
		response.SetStatus(hooksv1.ResponseStatusFailure)
		response.SetMessage(err.Error())
		return
	}
	said := strings.TrimSpace(hook + " " + version)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[call{cluster, hook}]++
	if !slices.ContainsFunc(e.order[cluster], func(before string) bool { return strings.HasPrefix(before, said+":") }) {
		e.order[cluster] = append(e.order[cluster], said+": "+state.String())
	}
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	if message, blocked := e.blocked[call{cluster, hook}]; blocked {
		response.SetMessage(message)
		response.(hooksv1.RetryResponseObject).SetRetryAfterSeconds(1)
	}
}

// handlers are the functions of all lifecycle hooks.
func (e *extension) handlers() map[string][2]any {
	return map[string][2]any{
		"before-cluster-create": {hooksv1.BeforeClusterCreate,
			func(ctx context.Context, q *hooksv1.BeforeClusterCreateRequest, a *hooksv1.BeforeClusterCreateResponse) {
				e.answer(ctx, q.Cluster.Name, "BeforeClusterCreate", "", a)
			}},
		"after-control-plane-initialized": {hooksv1.AfterControlPlaneInitialized,
			func(ctx context.Context, q *hooksv1.AfterControlPlaneInitializedRequest, a *hooksv1.AfterControlPlaneInitializedResponse) {
				e.answer(ctx, q.Cluster.Name, "AfterControlPlaneInitialized", "", a)
			}},
		"before-cluster-upgrade": {hooksv1.BeforeClusterUpgrade,
			func(ctx context.Context, q *hooksv1.BeforeClusterUpgradeRequest, a *hooksv1.BeforeClusterUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "BeforeClusterUpgrade", q.FromKubernetesVersion+"-"+q.ToKubernetesVersion, a)
			}},
		"before-control-plane-upgrade": {hooksv1.BeforeControlPlaneUpgrade,
			func(ctx context.Context, q *hooksv1.BeforeControlPlaneUpgradeRequest, a *hooksv1.BeforeControlPlaneUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "BeforeControlPlaneUpgrade", q.FromKubernetesVersion+"-"+q.ToKubernetesVersion, a)
			}},
		"after-control-plane-upgrade": {hooksv1.AfterControlPlaneUpgrade,
			func(ctx context.Context, q *hooksv1.AfterControlPlaneUpgradeRequest, a *hooksv1.AfterControlPlaneUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "AfterControlPlaneUpgrade", q.KubernetesVersion, a)
			}},
		"before-workers-upgrade": {hooksv1.BeforeWorkersUpgrade,
			func(ctx context.Context, q *hooksv1.BeforeWorkersUpgradeRequest, a *hooksv1.BeforeWorkersUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "BeforeWorkersUpgrade", q.FromKubernetesVersion+"-"+q.ToKubernetesVersion, a)
			}},
		"after-workers-upgrade": {hooksv1.AfterWorkersUpgrade,
			func(ctx context.Context, q *hooksv1.AfterWorkersUpgradeRequest, a *hooksv1.AfterWorkersUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "AfterWorkersUpgrade", q.KubernetesVersion, a)
			}},
		"after-cluster-upgrade": {hooksv1.AfterClusterUpgrade,
			func(ctx context.Context, q *hooksv1.AfterClusterUpgradeRequest, a *hooksv1.AfterClusterUpgradeResponse) {
				e.answer(ctx, q.Cluster.Name, "AfterClusterUpgrade", q.KubernetesVersion, a)
			}},
		"before-cluster-delete": {hooksv1.BeforeClusterDelete,
			func(ctx context.Context, q *hooksv1.BeforeClusterDeleteRequest, a *hooksv1.BeforeClusterDeleteResponse) {
				e.answer(ctx, q.Cluster.Name, "BeforeClusterDelete", "", a)
			}},
	}
}

// startExtension serves all lifecycle hooks over TLS, and registers that with Cluster API.
func startExtension(env *topology.Environment, certificates string) (*extension, error) {
	e := &extension{blocked: map[call]string{}, asked: map[call]int{}, order: map[string][]string{}}
	if err := topology.WriteServerCertificate(env.Authority, certificates); err != nil {
		return nil, err
	}
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	catalog := runtimecatalog.New()
	if err := hooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	server, err := runtimeserver.New(runtimeserver.Options{Catalog: catalog, Host: host, Port: port, CertDir: certificates})
	if err != nil {
		return nil, err
	}
	for name, handler := range e.handlers() {
		if err := server.AddExtensionHandler(runtimeserver.ExtensionHandler{Name: name, Hook: handler[0], HandlerFunc: handler[1]}); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the runtime extension ended:", err)
		}
	}()
	e.stop = func() { cancel(); <-ended }

	config := &runtimev1.ExtensionConfig{}
	config.Name = "recorder"
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + address, CABundle: env.Authority.Certificate}
	if err := env.Create(context.Background(), config); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}
