// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"sync"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// server is a running API server and how tests talk to it, as an admin.
type server = apiserver.Server

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

// workloadServers are the workload control planes. Each is started when it is first
// asked for.
var workloadServers = [3]func() (*server, error){
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-0") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-1") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-2") }),
}

// startWorkload starts one without workers: the add-ons here are ConfigMaps.
func startWorkload(name string) (*server, error) {
	return apiserver.Start(context.Background(), shared.dir, controlplane.Options{Name: name})
}
