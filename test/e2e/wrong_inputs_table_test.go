// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// chartOf is an add-on of a chart, and more fields of the add-on. small and deployed are of good charts; the second has a Deployment.
func chartOf(chart, more string) string {
	return "addons: [{name: NAME, namespace: NS, chart: " + chart + more + "}]"
}

func smallWith(more string) string    { return chartOf("{path: settings-1.0.0}", more) }
func deployedWith(more string) string { return chartOf("{path: web-1.0.0}", more) }

// helmAt is a chart in a Helm repository at a path of the plain server.
func helmAt(path, chart, version string) string {
	return chartOf("{helm: {url: 'http://PLAIN/"+path+"', chart: "+chart+", plainHTTP: true}, version: "+version+"}", "")
}

// withSecretRef is a chart in the Helm repository that asks who one is.
func withSecretRef(secret string) string {
	return chartOf("{helm: {url: 'http://PLAIN/auth', chart: web, plainHTTP: true, secretRef: {name: "+secret+"}}, version: 1.0.0}", "")
}

// inOwnNamespace is an add-on in a namespace of the input's own.
func inOwnNamespace(chart, more string) string {
	return "addons: [{name: NAME, namespace: NS-NAME, chart: {path: " + chart + "}" + more + "}]"
}

const (
	pairOfAddons = "addons: [{name: one, chart: {path: a}}, {name: two, chart: {path: a}, dependsOn: [one]}]"
	noSuchWave   = "rollout: {readyWithin: 1m, soak: 2h, waves: [{name: eu, clusterSelector: {matchLabels: {region: mars}}}]}, "
	ofSecret     = ", valuesFrom: [{kind: Secret, name: NAME}]"
	ghostly      = "{key: a, apiVersion: apps/v1, kind: DaemonSet, namespace: kube-system, name: cilium}"
	tooLarge     = "spec: {template: {spec: {containers: [{name: main, resources: {requests: {cpu: 5k}}}]}}}"
)

// unmet are the inputs whose answers lack a way out, or the object and the field as well, and why they do.
var unmet = map[string]string{
	"a01": byTypes, "a03": byTypes, "a15": byTypes, "a22": byTypes, "a27": byTypes, "a32": byTypes, "a38": byTypes,
	"b16":       "a chart without a schema takes any value",
	"b23":       "the ReplicaSet's words say which quota, and nothing may be added to those",
	"c8-nosuch": "the API server says that there is no such object",
}

const byTypes = "the API server says it, by the types of the fields"

// refusedInputs are told when they are written: the fields, the names and the way out.
var refusedInputs = [][4]string{
	{"a01", "clusterSelector: null, clusterSelecter: {}, " + smallWith(""), ".spec.clusterSelecter"},
	{"a02", "clusterSelector: null, " + smallWith(""), "spec", "set spec.clusterSelector"},
	{"a03", smallWith(", values: [replicas]"), ".values"},
	{"a04", chartOf("{path: a, helm: {url: 'https://charts.example.org', chart: web}, version: 1.0.0}", ""), "ADDON.chart", "set exactly one"},
	{"a05", chartOf("{helm: {url: 'https://charts.example.org', chart: web}}", ""), "ADDON.chart", "need version"},
	{"a06", chartOf("{"+inOCI+", version: 1.O.0}", ""), "ADDON.chart.version", "as in"},
	{"a07", chartOf(inHelm("charts.example.org"), ""), "ADDON.chart.helm.url", "https://host/path"},
	{"a08", chartOf("{oci: {url: 'oci://registry.example.org/web:1.0.0'}, version: 1.0.0}", ""), "ADDON.chart.oci.url", "without tag"},
	{"a09", smallWith(`, valuesTemplate: "a: {{ .Cluster.metadata.name\n"`), "ADDON.valuesTemplate", "unclosed"},
	{"a10", smallWith(`, valuesTemplate: "a: {{ .Cluster.metadata.name | uper }}\n"`), "ADDON.valuesTemplate", "uper"},
	{"a11", smallWith(", dependsOn: [NAMEx]"), "ADDON.dependsOn[0]", "NAMEx"},
	{"a12", "addons: [{name: one, chart: {path: a}, dependsOn: [two]}, {name: two, chart: {path: a}, dependsOn: [one]}]",
		"one -> two -> one", "take one"},
	{"a13", "addons: [{name: one, chart: {path: a}, dependsOn: [a13-b/two]}]", "a13/one -> a13-b/two -> a13/one", "take one"},
	{"a14", "addons: [{name: one, chart: {path: a}}, {name: one, chart: {path: a}}]", ".spec.addons|one", "duplicate"},
	{"a15", "addons: [{name: Web, chart: {path: a}}]", "ADDON.name"},
	{"a16", "rollout: {waves: [{name: canary, size: 0}]}, " + smallWith(""), "spec.rollout.waves[0].size", "from 1"},
	{"a17", "rollout: {waves: [{name: canary, size: 1}, {name: canary, size: 2}]}, " + smallWith(""), "waves|canary", "duplicate"},
	{"a18", "rollout: {waves: [{name: canary, size: 1, soak: 1 day}]}, " + smallWith(""), "spec.rollout.waves[0].soak", "24h"},
	{"a19", "rollout: {windows: [{start: '22:00', duration: 8h}]}, " + smallWith(""), "spec.rollout.windows[0].start", "minute, hour"},
	{"a20", "rollout: {windows: [{start: '0 22 * * *', duration: 8h, timeZone: Europe/Bergen}]}, " + smallWith(""),
		"spec.rollout.windows[0].timeZone", "IANA"},
	{"a21", "rollout: {onFailure: Rollback}, " + smallWith(""), "spec.rollout.onFailure", "RollBack"},
	{"a22", smallWith(", progressDeadlineSeconds: 10m"), "progressDeadlineSeconds"},
	{"a23", "removalLimit: 150%, " + smallWith(""), "spec.removalLimit", "100%"},
	{"a24", "drift: {policy: correct}, " + smallWith(""), "spec.drift.policy", "Correct"},
	{"a25", smallWith(", readiness: [{apiVersion: apps/v1, kind: Deployment, expression: 'self.status.replicas >= two'}]"),
		"ADDON.readiness[0].expression", "'two'"},
	{strings.Repeat("n", 60), pairOfAddons, "metadata.name", "52 characters"}, // a26
	{"a27", "clusterSelector: {matchLabels: {env: 1}}, " + smallWith(""), "clusterSelector"},
	{"a28", "addons: null", "spec", "set spec.addons"},
	{"a29", "rollout: {windows: [{start: '0 0 30 2 *', duration: 10m}]}, " + smallWith(""), "spec.rollout.windows[0].start", "no such day"},
	{"a30", smallWith(", patches: [{patch: 'kind: [', target: {kind: Deployment}}]"), "ADDON.patches[0]", "line 1"},
	{"a31", "rollout: {maxFailed: 100%, onFailure: RollBack}, " + smallWith(""), "spec.rollout.maxFailed", "Lower it"},
	{"a32", smallWith(`, values: "replicas: 1\n"`), ".values"},
	{"a34", "rollout: {soak: 1d}, " + smallWith(""), "spec.rollout.soak", "24h"},
	{"a35", chartOf(inHelm(" https://charts.example.org"), ""), "ADDON.chart.helm.url", "https://host/path"},
	{"a36", chartOf("{oci: {url: 'https://registry.example.org/web'}, version: 1.0.0}", ""), "ADDON.chart.oci.url", "oci://"},
	{"a37", chartOf(inHelm("oci://registry.example.org/charts"), ""), "ADDON.chart.helm.url", "chart.oci.url"},
	{"a38", "addons: null, chartName: nginx, repoURL: 'https://charts.example.org'", ".spec.|not declared"}, // names one of them
	{"a39", "addons: []", "spec.addons", "at least 1"},
	{"a40", "addons: [{name: one, chart: {path: a}, dependsOn: [one]}]", "ADDON", "itself"},
	{"a41", chartOf("{"+inOCI+", version: latest}", ""), "ADDON.chart.version", "as in"},
	{"b48", chartOf(inHelm("http://PLAIN/good"), ""), "ADDON.chart.helm", "plainHTTP: true"},
}

// addonInputs are told by the ClusterAddon: the fields, the reason, the names and the way out.
var addonInputs = [][5]string{
	{"b01", chartOf("{path: settings-1.0.1}", ""), "ArtifactNotFound", "ADDON.chart.path|settings-1.0.1", "put it there"},
	{"b02", helmAt("good", "wbe", "1.0.0"), "ArtifactNotFound", "ADDON.chart.helm|wbe", "helm.chart"},
	{"b03", helmAt("good", "web", "1.2.0"), "ArtifactNotFound", "ADDON.chart.helm|1.2.0", "correct version"},
	{"b04", helmAt("goood", "web", "1.0.0"), "ArtifactNotFound", "ADDON.chart.helm|index.yaml", "helm.url has to be"},
	{"b05", chartOf(inHelm("https://charts.exmaple.invalid"), ""), "SourceUnavailable", "ADDON.chart.helm|charts.exmaple.invalid", "check"},
	{"b06", chartOf(inHelm("https://DEAD"), ""), "SourceUnavailable", "ADDON.chart.helm|DEAD", "check"},
	{"b07", helmAt("auth", "web", "1.0.0"), "SourceUnauthorized", "ADDON.chart.helm|PLAIN", "secretRef"},
	{"b08", chartOf(inHelm("https://TLS/good"), ""), "SourceUntrusted", "ADDON.chart.helm|TLS", "ca.crt"},
	{"b09", helmAt("html", "web", "1.0.0"), "ArtifactInvalid", "ADDON.chart.helm", "correct helm.url"},
	{"b10", chartOf("{helm: {url: 'http://PLAIN/good', chart: web, plainHTTP: true, digest: '"+otherDigest+"'}, version: 1.0.0}", ""),
		"DigestMismatch", "ADDON.chart.helm|" + otherDigest, "correct one"},
	{"b47", chartOf("{oci: {url: 'oci://PLAIN/charts/web', plainHTTP: true}, version: 1.0.0}", ""),
		"ArtifactNotFound", "ADDON.chart.oci", "correct oci.url"},
	{"b49", withSecretRef("nope"), "SourceUnauthorized", "ADDON.chart.helm.secretRef|NS/nope", "create it"},
	{"b50", withSecretRef("NAME"), "SourceUnauthorized", "ADDON.chart.helm|NS/NAME", "add username and password"},
	{"b51", chartOf("{helm: {url: 'https://TLS/good', chart: web, secretRef: {name: NAME}}, version: 1.0.0}", ""),
		"SourceUnauthorized", "ADDON.chart.helm.secretRef|NS/NAME|ca.crt", "correct it"},
	{"b54", helmAt("err", "web", "1.0.0"), "SourceUnavailable", "ADDON.chart.helm|PLAIN|503", "check"},
	{"b55", withSecretRef("NAME"), "SourceUnauthorized", "ADDON.chart.helm|NS/NAME", "correct them"},

	{"b11", smallWith(ofSecret), "ValuesNotFound", "ADDON.valuesFrom[0]|NS/NAME", "create it"},
	{"b12", smallWith(ofSecret), "ValuesNotFound", "ADDON.valuesFrom[0]|NS/NAME|values.yaml", "correct key"},
	{"b13", smallWith(ofSecret), "ValuesInvalid", "ADDON.valuesFrom[0]|NS/NAME", "want a map"},
	{"b14", smallWith(`, valuesTemplate: "text: '{{ .Cluster.metadata.labels.stage }}'"`),
		"ValuesTemplateFailed", "ADDON.valuesTemplate|stage", "correct the template"},
	{"b15", chartOf("{path: strict-1.0.0}", ", values: {replicas: three}"), "SchemaViolation", "ADDON.values.replicas", "want integer"},
	{"b16", smallWith(", values: {txet: a}"), "", ""},
	{"b17", chartOf("{path: needs-domain-1.0.0}", ""), "TemplateFailed", "ADDON.chart|needs-domain/templates/text.yaml", "values"},
	{"b18", chartOf("{path: nil-1.0.0}", ""), "TemplateFailed", "ADDON.chart|nil/templates/text.yaml", "correct the add-on's values"},
	{"b19", chartOf("{path: monitor-1.0.0}", ""), "KindMissing", "ServiceMonitor NS/shop", "Install"},
	{"b20", chartOf("{path: hooked-1.0.0}", ""), "HookFailed", "Job NS/pre-install", "See the logs"},
	{"b21", "degradedAfterSeconds: 10, " + deployedWith(""), "CrashLoopBackOff", "Deployment NS/NAME|pod NAME-", "log"},
	{"b22", deployedWith(", values: {fate: no-image}"), "ImagePullBackOff", "Deployment NS/NAME|pod NAME-", "image registry.example/web:1"},
	{"b23", inOwnNamespace("web-1.0.0", ""), "WaitingForObjects", "Deployment NS-NAME/NAME|quota: q|pods=1"},
	{"b24", deployedWith(""), "ImmutableField", "Deployment NS/NAME|spec.selector", "Recreate"},
	{"b25", inOwnNamespace("web-1.0.0", ""), "WaitingForWebhook", "ConfigMap NS-NAME/NAME|policy.example.org", "Check what serves"},
	{"b26", smallWith(""), "ObjectExists", "ConfigMap NS/NAME", "adoptionPolicy"},
	{"b27", smallWith(", values: {text: rival}"), "ReleaseTaken", "b27-first|NS", "name or namespace"},
	{"b28", inOwnNamespace("settings-1.0.0", ", createNamespace: false"), "NamespaceMissing", "NS-NAME", "createNamespace"},
	{"b29", "serviceAccountName: deployer, " + smallWith(""), "Forbidden", "ServiceAccount deployer|NS", "has to be allowed"},
	{"b30", deployedWith(`, patches: [{target: {kind: Deployment, name: wbe}, patch: "- {op: add, path: /spec/paused, value: true}"}]`),
		"PatchFailed", "ADDON.patches[0]|wbe", "take it out"},
	{"b45", deployedWith(", patches: [{target: {kind: Deployment}, patch: '" + tooLarge + "'}]"),
		"Unschedulable", "Deployment NS/NAME|Pod NAME-", "Insufficient cpu"},
	{"b52", smallWith(", dependsOn: [ghost/web]"), "WaitingForDependency", "ghost/web", "take it out of dependsOn"},
	{"b53", smallWith(", preconditions: [{objects: [" + ghostly + "], expression: 'a.status.numberReady == 1'}]"),
		"WaitingForPrecondition", "ADDON.preconditions[0]|DaemonSet kube-system/cilium", "doesn't exist"},
	{"b56", smallWith(ofSecret), "ValuesInvalid", "ADDON.valuesFrom[0]|NS/NAME|text", "already set"},
}

// connectionInputs are told by the ClusterAddon of the input's name: the reason, the names and the way out.
var connectionInputs = [][4]string{
	{"c1-refuses", "ConnectionRefused", "DEAD|NS/NAME-kubeconfig", "check"},
	{"c1-silent", "ConnectionTimedOut", "127.0.0.1", "check the API server"},
	{"c1-no-name", "NameResolutionFailed", "api.prod.invalid|NS/NAME-kubeconfig", "check"},
	{"c2-authority", "TLSFailed", "NS/NAME-kubeconfig", "certificate-authority-data"},
	{"c2-token", "Unauthorized", "NS/NAME-kubeconfig", "renew"},
	{"c3", "KubeconfigMissing", "NS/NAME-kubeconfig", "have it made again"},
	{"c4-garbage", "KubeconfigRefused", "NS/NAME-kubeconfig", "YAML"},
	{"c4-exec", "KubeconfigRefused", "NS/NAME-kubeconfig", "use a token"},
	{"c5", "RecordsUnreadable", "secrets", "may list and watch Secrets"},
	{"c6", "DuplicateCluster", "NS/NAME-kubeconfig|NS/prod-kubeconfig", "correct that kubeconfig"},
}

// commandInputs are told by kubectl chandler: the line, the names and the way out.
var commandInputs = [][4]string{
	{"c8", "rollout approve c8 nosuchwave", "AddonStack c8|nosuchwave", "there are first"},
	{"c8-nosuch", "rollout hold NAME prod", "addonstacks|NAME"},
	{"c9-undo", "undo c8", "AddonStack c8", "history"},
	{"c9-confirm", "confirm c8", "stack c8", "status lists"},
	{"c9-retry", "rollout retry c8", "AddonStack c8", "rollout resume"},
}

// allWrongInputs are those, and the ones that other objects tell.
func allWrongInputs() (all []wrongInput) {
	for _, r := range refusedInputs {
		all = append(all, wrongInput{name: r[0], told: refused(r[1]), names: r[0] + "|" + strings.ReplaceAll(r[2], "ADDON", "spec.addons[0]"), out: r[3]})
	}
	for _, r := range addonInputs {
		names := strings.ReplaceAll(r[3], "ADDON", "addons[NAME]")
		all = append(all, wrongInput{name: r[0], fields: r[1], told: onAddon, reason: r[2], names: names, out: r[4]})
	}
	for _, r := range connectionInputs {
		all = append(all, wrongInput{name: r[0], told: onCluster, reason: r[1], names: r[2], out: r[3]})
	}
	for _, r := range commandInputs {
		all = append(all, wrongInput{name: r[0], told: byCommand(r[1]), names: r[2], out: r[3]})
	}
	return append(all,
		wrongInput{name: "a33", fields: noSuchWave + smallWith(""), told: warnedAndWaiting,
			names: "spec.rollout.readyWithin|wave eu", out: "Raise it|optional: true"},
		wrongInput{name: "b31", fields: "clusterSelector: {matchLabels: {env: prdo}}, " + smallWith(""),
			told: onStack(addonsv1.ReadyCondition), names: "namespace NS|env=prdo", out: "env=prod"},
		wrongInput{name: "b32", told: onStack(addonsv1.ReadyCondition), names: "NS-elsewhere has no Cluster", out: "own namespace"},
		wrongInput{name: "b46", fields: helmAt("good", "web", "2.x"), told: onStack(addonsv1.SourcesReadyCondition),
			names: "addons[NAME].chart|2.x", out: "the newest"},
		wrongInput{name: "c7", told: onInstance, reason: addonsv1.ScopeTakenReason, names: "ProviderInstance NS/", out: "--namespace"})
}
