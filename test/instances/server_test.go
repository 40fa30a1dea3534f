// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// server is a running API server and how tests talk to it, as an admin.
type server struct {
	*controlplane.ControlPlane
	client.WithWatch
	clientset *kubernetes.Clientset
	audit     *audit.Log
}

// auditPolicy records what was written, too, where the scope of an instance shows
// in the object: its labels.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: addons.cluster.x-k8s.io}
  - {group: cluster.x-k8s.io}
  - {group: apps, resources: [controllerrevisions]}
- level: Metadata
`

// running is every server that was started, for stopServers.
var running struct {
	sync.Mutex
	servers []*server
}

func startServer(ctx context.Context, o controlplane.Options) (*server, error) {
	dir, err := os.MkdirTemp(shared.dir, o.Name+"-")
	if err != nil {
		return nil, err
	}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	o.AuditLog = filepath.Join(dir, "audit.log")
	o.ExtraAPIServerArgs = append(o.ExtraAPIServerArgs, "--audit-policy-file="+policy)
	plane, err := controlplane.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &server{ControlPlane: plane}
	running.Lock()
	running.servers = append(running.servers, s)
	running.Unlock()
	if s.WithWatch, err = client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme()}); err != nil {
		return nil, err
	}
	if s.clientset, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		return nil, err
	}
	s.audit = audit.Of(s.clientset, o.AuditLog)
	return s, nil
}

func stopServers() {
	running.Lock()
	defer running.Unlock()
	for _, s := range running.servers {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping", s.Name()+":", err)
		}
	}
}

var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, addonsv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// clusterAPICRDs are the files of the kinds that Chandler reads.
var clusterAPICRDs = sync.OnceValues(func() ([]string, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	cmd.Dir = shared.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	bases := filepath.Join(strings.TrimSpace(string(out)), "core/config/crd/bases")
	return []string{filepath.Join(bases, "cluster.x-k8s.io_clusters.yaml"), filepath.Join(bases, "cluster.x-k8s.io_clusterclasses.yaml")}, nil
})

// workloadServers are the workload control planes. Each is started when it is first
// asked for.
var workloadServers = [3]func() (*server, error){
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-0") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-1") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-2") }),
}

// startWorkload starts one without workers: the add-ons here are ConfigMaps.
func startWorkload(name string) (*server, error) {
	return startServer(context.Background(), controlplane.Options{Name: name})
}
