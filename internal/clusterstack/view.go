// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterView returns a Cluster of cluster.x-k8s.io/v1beta2 as templates of
// releases know it, in the form of v1beta1. It adds what has another name or shape
// there, and keeps the rest: a template written for either form finds its fields.
//
//	spec.topology.class, .classNamespace         from classRef
//	spec.controlPlaneRef, infrastructureRef      with namespace
//	spec.controlPlaneEndpoint                    host "" and port 0 until they are known
//	status.controlPlaneReady, infrastructureReady  from initialization
//	status.failureDomains                        a map by name
//	status.conditions                            those of v1beta1, while they are served
//
// The argument isn't changed.
func ClusterView(cluster map[string]any) map[string]any {
	view := runtime.DeepCopyJSON(cluster)
	view["apiVersion"] = "cluster.x-k8s.io/v1beta1"
	if spec := at(view, "spec"); spec != nil {
		addToSpec(spec, at(view, "metadata")["namespace"])
	}
	if status := at(view, "status"); status != nil {
		addToStatus(status)
	}
	return view
}

func addToSpec(spec map[string]any, namespace any) {
	endpoint := map[string]any{"host": "", "port": int64(0)}
	maps.Copy(endpoint, at(spec, "controlPlaneEndpoint"))
	spec["controlPlaneEndpoint"] = endpoint
	for _, field := range []string{"controlPlaneRef", "infrastructureRef"} {
		if ref := at(spec, field); ref != nil {
			ref["namespace"] = namespace
		}
	}
	if topology := at(spec, "topology"); topology != nil {
		class := at(topology, "classRef")
		topology["class"] = class["name"]
		if class["namespace"] != nil {
			topology["classNamespace"] = class["namespace"]
		}
	}
}

func addToStatus(status map[string]any) {
	done := at(status, "initialization")
	status["infrastructureReady"] = done["infrastructureProvisioned"] == true
	status["controlPlaneReady"] = done["controlPlaneInitialized"] == true
	if domains, ok := status["failureDomains"].([]any); ok {
		byName := map[string]any{}
		for _, domain := range domains {
			domain, _ := domain.(map[string]any)
			if name, ok := domain["name"].(string); ok {
				delete(domain, "name")
				byName[name] = domain
			}
		}
		status["failureDomains"] = byName
	}
	if previous, ok := at(at(status, "deprecated"), "v1beta1")["conditions"]; ok {
		status["conditions"] = previous
	}
}

// at returns the map in a field, nil if there is none.
func at(object map[string]any, field string) map[string]any {
	found, _ := object[field].(map[string]any)
	return found
}
