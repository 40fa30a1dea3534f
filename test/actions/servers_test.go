// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// user is Chandler's name in audit logs of workload clusters.
const user = "chandler"

// auditPolicy records each version of a password, and the metadata of other writes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - group: ""
    resources: [secrets]
    resourceNames: [PASSWORDS]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  resources:
  - group: ""
    resources: [configmaps]
    resourceNames: []
  namespaces: [default]
- level: None
`

// hubPolicy records what is written into AddonStacks, their revisions and ClusterAddons.
const hubPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: addons.cluster.x-k8s.io
    resources: [addonstacks, clusteraddons]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  resources:
  - group: ""
    resources: [configmaps]
  namespaces: [default]
- level: None
`

// servers are the API servers of a run: two management clusters, and a workload cluster for each Cluster.
type servers struct {
	hubs      [2]*apiserver.Server
	workloads []*apiserver.Server
}

// startServers starts all of them, four at a time.
func startServers(t *testing.T, clusters int) *servers {
	t.Helper()
	crds, err := apiserver.ClusterAPICRDs(t.Context(), "clusters", "clusterclasses")
	must.Succeed(t, err)
	crds = append(crds, filepath.Join(shared.root, "config/crd/bases"))
	var passwords []string
	for k := range components {
		passwords = append(passwords, componentName(k)+"-password")
	}
	policy := strings.Replace(auditPolicy, "PASSWORDS", strings.Join(passwords, ", "), 1)
	s := &servers{workloads: make([]*apiserver.Server, clusters)}
	var starting errgroup.Group
	starting.SetLimit(4)
	ctx := context.WithoutCancel(t.Context())
	for i := range s.hubs {
		starting.Go(func() (err error) {
			s.hubs[i], err = apiserver.Start(ctx, shared.dir, controlplane.Options{Name: fmt.Sprintf("hub-%d", i), Workers: true, CRDPaths: crds, AuditPolicy: hubPolicy})
			if err != nil {
				return err
			}
			return s.hubs[i].GrantScopes(ctx)
		})
	}
	for i := range s.workloads {
		starting.Go(func() (err error) {
			s.workloads[i], err = apiserver.Start(ctx, shared.dir, controlplane.Options{Name: clusterName(i), AuditPolicy: policy})
			return err
		})
	}
	must.Succeed(t, starting.Wait())
	return s
}
