// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// ofCilium are settings of Cilium. Certificates come from cert-manager: no rendering of those that the chart makes is like another.
var ofCilium = map[string]string{
	"debug":                  "debug: {enabled: true}",
	"without Hubble":         "hubble: {enabled: false}",
	"without Envoy":          "envoy: {enabled: false}",
	"relay and UI":           "hubble: {relay: {enabled: true}, ui: {enabled: true, ingress: {enabled: true, hosts: [hubble.example.org]}}}",
	"Hubble's metrics":       "hubble: {metrics: {enabled: [dns, drop, 'flow:sourceContext=pod'], serviceMonitor: {enabled: true}, dashboards: {enabled: true}}}",
	"monitors":               "prometheus: {enabled: true, serviceMonitor: {enabled: true}}\noperator: {prometheus: {enabled: true, serviceMonitor: {enabled: true}}}",
	"dashboards":             "dashboards: {enabled: true}\noperator: {dashboards: {enabled: true}}",
	"in place of kube-proxy": "kubeProxyReplacement: true\nk8sServiceHost: api.example.org\nk8sServicePort: 6443",
	"ingresses":              "kubeProxyReplacement: true\ningressController: {enabled: true, default: true, loadbalancerMode: shared}",
	"gateways":               "kubeProxyReplacement: true\ngatewayAPI: {enabled: true}",
	"WireGuard":              "encryption: {enabled: true, type: wireguard, nodeEncryption: true}",
	"IPsec":                  "encryption: {enabled: true, type: ipsec}",
	"native routing":         "routingMode: native\nautoDirectNodeRoutes: true\nipv4NativeRoutingCIDR: 10.0.0.0/8",
	"both families":          "ipv6: {enabled: true}\nipam: {operator: {clusterPoolIPv6PodCIDRList: ['fd00::/104']}}",
	"egress gateways":        "kubeProxyReplacement: true\nbpf: {masquerade: true}\negressGateway: {enabled: true}",
	"BGP":                    "bgpControlPlane: {enabled: true}",
	"AWS":                    "eni: {enabled: true}\nipam: {mode: eni}\nroutingMode: native\negressMasqueradeInterfaces: eth0",
	"a mesh":                 "cluster: {name: one, id: 1}\nclustermesh: {useAPIServer: true, apiserver: {metrics: {serviceMonitor: {enabled: true}}, tls: {auto: {method: certmanager, certManagerIssuerRef: {name: ca, kind: ClusterIssuer, group: cert-manager.io}}}}}",
	"SPIRE":                  "authentication: {enabled: true, mutual: {spire: {enabled: true, install: {enabled: true, server: {dataStorage: {enabled: false}}}}}}",
	"preflight":              "preflight: {enabled: true}",
	"node initialization":    "nodeinit: {enabled: true}",
	"an operator less":       "operator: {replicas: 1, podDisruptionBudget: {enabled: true}}",
	"other names":            "nodeSelectorLabels: true\ncommonLabels: {team: a}\nnamespaceOverride: network",
}

// settings of published charts: each one makes another manifest. Files of one chart share them.
var settings = []struct {
	archives []string
	base     map[string]any
	values   map[string]string
}{
	{[]string{"cilium-1.19.5.tgz", "cilium-1.19.6.tgz", "cilium-1.20.0.tgz"}, withoutCertificates, ofCilium},
	{[]string{"ingress-nginx-4.15.1.tgz"}, nil, map[string]string{
		"the defaults":       "{}",
		"a DaemonSet":        "controller: {kind: DaemonSet, hostPort: {enabled: true}, updateStrategy: {rollingUpdate: {maxUnavailable: 2}, type: RollingUpdate}}",
		"the host's network": "controller: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, reportNodeInternalIp: true, service: {enabled: false}}",
		"autoscaling":        "controller: {autoscaling: {enabled: true, maxReplicas: 5, behavior: {scaleDown: {stabilizationWindowSeconds: 300}}}}",
		"KEDA":               "controller: {keda: {enabled: true, triggers: [{type: cpu, metadata: {value: '50'}}]}}",
		"a budget":           "controller: {replicaCount: 3, minAvailable: 2, topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}",
		"monitors":           "controller: {metrics: {enabled: true, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true, rules: [{alert: Down, expr: 'up == 0', annotations: {text: '{{ $value }}'}}]}}}",
		"a default backend":  "defaultBackend: {enabled: true, replicaCount: 2, autoscaling: {enabled: true}, networkPolicy: {enabled: true}, extraConfigMaps: [{name: errors, data: {'404': gone}}]}",
		"TCP and UDP":        "tcp: {'8080': 'default/web:80'}\nudp: {'53': 'kube-system/dns:53'}\nportNamePrefix: p",
		"an inner service":   "controller: {service: {type: NodePort, nodePorts: {http: 30080}, internal: {enabled: true, annotations: {example.org/internal: 'true'}}}}",
		"network policies":   "controller: {networkPolicy: {enabled: true}, admissionWebhooks: {patch: {networkPolicy: {enabled: true}}}}",
		"cert-manager":       "controller: {admissionWebhooks: {certManager: {enabled: true}}}",
		"without webhooks":   "controller: {admissionWebhooks: {enabled: false}}",
		"a scope":            "controller: {scope: {enabled: true, namespace: web}}\nrbac: {scope: true}",
		"headers":            "controller: {proxySetHeaders: {X-Real: '$remote_addr'}, addHeaders: {X-Frame-Options: DENY}, config: {use-http2: 'false'}}",
		"parameters":         "dhParam: Zm9v\ncontroller: {maxmindLicenseKey: key, extraModules: [{name: otel, image: {registry: example.org, image: otel, tag: '1', distroless: false}}]}",
		"classes":            "controller: {ingressClassResource: {default: true, aliases: [inner, outer], parameters: {apiGroup: example.org, kind: Class, name: a}}, ingressClassByName: true}",
	}},
	{[]string{"kube-state-metrics-8.4.0.tgz"}, nil, map[string]string{
		"sharding":           "autosharding: {enabled: true}\nreplicas: 3",
		"a proxy":            "kubeRBACProxy: {enabled: true}\nselfMonitor: {enabled: true}",
		"a filter":           "authFilter: {enabled: true}",
		"a monitor":          "prometheus: {monitor: {enabled: true, additionalLabels: {team: a}, http: {interval: 30s, honorLabels: true}}}\nselfMonitor: {enabled: true}",
		"a scrape config":    "prometheus: {scrapeconfig: {enabled: true, staticConfigLabels: {team: a}}}",
		"a network policy":   "networkPolicy: {enabled: true, flavor: kubernetes}",
		"a budget":           "replicas: 2\npodDisruptionBudget: {maxUnavailable: 1}",
		"a vertical scaler":  "verticalPodAutoscaler: {enabled: true, controlledResources: [cpu], maxAllowed: {cpu: '1'}}",
		"custom resources":   "customResourceState: {enabled: true, config: {kind: CustomResourceStateMetrics, spec: {resources: [{groupVersionKind: {group: example.org, version: v1, kind: Web}}]}}}",
		"more manifests":     "extraManifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-more'}, data: {a: b}}]",
		"some namespaces":    "namespaces: web,db\nrbac: {useClusterRole: false}\ncollectors: [pods, secrets]",
		"a kubeconfig":       "kubeconfig: {enabled: true, secret: YXBpVmVyc2lvbjogdjE=}",
		"both families":      "service: {ipDualStack: {enabled: true}, type: NodePort, nodePort: 30000}",
		"without rights":     "rbac: {create: false}\nserviceAccount: {create: false, name: mine}",
		"another image":      "image: {registry: example.org, repository: ksm, sha: 0a1b}\nimagePullSecrets: [{name: pull}]\nresources: {limits: {memory: 1Gi}}",
		"labels and metrics": "metricLabelsAllowlist: ['pods=[app]']\nmetricDenylist: [kube_secret_labels]\nreleaseLabel: true\ncustomLabels: {team: a}",
	}},
	{[]string{"metrics-server-3.13.1.tgz"}, nil, map[string]string{
		"a resizer":               "addonResizer: {enabled: true, nanny: {cpu: 20m}}",
		"a budget":                "replicas: 2\npodDisruptionBudget: {enabled: true, minAvailable: 1}",
		"a monitor":               "metrics: {enabled: true}\nserviceMonitor: {enabled: true, additionalLabels: {team: a}}",
		"cert-manager":            "tls: {type: cert-manager}\napiService: {insecureSkipTLSVerify: false}",
		"an issuer that is there": "tls: {type: cert-manager, certManager: {existingIssuer: {enabled: true, kind: ClusterIssuer, name: ca}, duration: 2160h}}",
		"a Secret that is there":  "tls: {type: existingSecret, existingSecret: {name: tls, lookup: false}}\napiService: {caBundle: abc, insecureSkipTLSVerify: false}",
		"the host's network":      "hostNetwork: {enabled: true}\ncontainerPort: 4443\ndnsConfig: {nameservers: [10.0.0.10]}",
		"without an APIService":   "apiService: {create: false}",
		"more arguments":          "args: [--kubelet-insecure-tls]\ndefaultArgs: [--cert-dir=/tmp]\npriorityClassName: ''",
		"other names":             "nameOverride: metrics\ncommonLabels: {team: a}\nnamespaceOverride: monitoring\nrbac: {create: false}",
	}},
}

// TestValuesOfRealChartsAsHelm renders published charts with settings that their users have, as Helm does.
func TestValuesOfRealChartsAsHelm(t *testing.T) {
	long.Test(t)
	r := rendering.NewRenderer(t)
	facts := helmFacts()
	facts.APIVersions = append(facts.APIVersions, "cert-manager.io/v1", "monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor",
		"gateway.networking.k8s.io/v1/GatewayClass", "autoscaling.k8s.io/v1", "keda.sh/v1alpha1")
	for _, s := range settings {
		for _, archive := range s.archives {
			packed, files := realdata.Read(t, "charts", archive), rendering.RealChart(t, archive)
			made := map[string]string{} // the setting by its manifest
			for _, name := range slices.Sorted(maps.Keys(s.values)) {
				t.Run(archive+"/"+name, func(t *testing.T) {
					given := map[string]any{}
					must.Succeed(t, yaml.Unmarshal([]byte(s.values[name]), &given))
					req := rendering.ChartJob(files)
					req.Values, req.Facts = values.Merge(s.base, given), facts
					got, want := rendering.MustChart(t, r, req), helmTemplateFor(t, packed, req.Values, facts)
					must.Equal(t, want.Manifest, got.Manifest, "manifest differs from Helm's")
					compareHooks(t, want.Hooks, got.Hooks, len(got.Hooks))
					if other, is := made[got.Manifest]; is {
						t.Errorf("it shows nothing that %q doesn't", other)
					}
					made[got.Manifest] = name
				})
			}
		}
	}
}
