// SPDX-License-Identifier: Apache-2.0

package clusterstack_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

const newCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod, namespace: fleet}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}
  controlPlaneEndpoint: {host: prod.example.org, port: 6443}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: prod-cp}
  topology:
    classRef: {name: docker-scs-1-31-v1, namespace: classes}
    version: v1.31.6
    variables: [{name: mtu, value: 1450}]
status:
  initialization: {infrastructureProvisioned: true}
  failureDomains: [{name: az1, controlPlane: true, attributes: {rack: "1"}}]
  conditions: [{type: Available, status: "True"}]
  deprecated: {v1beta1: {conditions: [{type: ControlPlaneReady, status: "True"}]}}
`

const oldCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: prod, namespace: fleet}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}
  controlPlaneEndpoint: {host: prod.example.org, port: 6443}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: prod-cp, namespace: fleet}
  topology:
    classRef: {name: docker-scs-1-31-v1, namespace: classes}
    class: docker-scs-1-31-v1
    classNamespace: classes
    version: v1.31.6
    variables: [{name: mtu, value: 1450}]
status:
  initialization: {infrastructureProvisioned: true}
  infrastructureReady: true
  controlPlaneReady: false
  failureDomains: {az1: {controlPlane: true, attributes: {rack: "1"}}}
  conditions: [{type: ControlPlaneReady, status: "True"}]
  deprecated: {v1beta1: {conditions: [{type: ControlPlaneReady, status: "True"}]}}
`

func TestClusterView(t *testing.T) {
	read := func(text string) (tree map[string]any) {
		must.Succeed(t, yaml.Unmarshal([]byte(text), &tree))
		return tree
	}
	cluster := read(newCluster)
	must.Equal(t, read(oldCluster), clusterstack.ClusterView(cluster))
	must.Equal(t, read(newCluster), cluster, "the argument was changed")
	for given, want := range map[string]map[string]any{
		"{spec: {}}": {"host": "", "port": int64(0)},
		"{spec: {controlPlaneEndpoint: {host: a}}}": {"host": "a", "port": int64(0)},
	} {
		view := clusterstack.ClusterView(read(given))
		must.Equal[any](t, want, view["spec"].(map[string]any)["controlPlaneEndpoint"], given)
	}
	for _, odd := range []string{"{}", "{spec: 1, status: []}", "{spec: {topology: {}}, status: {failureDomains: [1, {name: 2}]}}"} {
		clusterstack.ClusterView(read(odd)) // doesn't panic
	}
}

// Releases as they were published.
func TestRealReleases(t *testing.T) {
	directories, err := filepath.Glob(filepath.Join(realdata.Path(t, "cluster-stacks"), "*"))
	if err != nil || len(directories) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	for _, directory := range directories {
		tag, err := clusterstack.ParseTag(filepath.Base(directory))
		must.Succeed(t, err)
		read := func(name string) []byte {
			data, err := os.ReadFile(filepath.Join(directory, name))
			must.Succeed(t, err)
			return data
		}
		m, err := clusterstack.ParseMetadata(read(clusterstack.MetadataFile))
		if err != nil || m.ClusterStack != tag.Version || len(m.Unknown) > 0 {
			t.Errorf("%s: %+v, %v", tag, m, err)
		}
		read(tag.Stack + "-cluster-addon-" + m.ClusterAddon + ".tgz")
		s, err := clusterstack.ParseStages(read(clusterstack.StagesFile))
		if err != nil || len(s.Hooks[clusterstack.AfterControlPlaneInitialized]) != 2 || len(s.Unknown) > 0 {
			t.Errorf("%s: %+v, %v", tag, s, err)
		}
	}
}
