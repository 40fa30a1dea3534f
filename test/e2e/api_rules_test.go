// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

const (
	// otherDigest is of nothing.
	otherDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	// inOCI and pinned are where charts and files may come from.
	inOCI  = "oci: {url: 'oci://registry.example.org/web'}"
	pinned = "oci: {url: 'oci://registry.example.org/web', digest: '" + otherDigest + "'}"
)

// refusedSpecs are fields of spec that the API server refuses together, and what it says then.
var refusedSpecs = [][]string{
	{"an empty list of classes and no selector", "{clusterSelector: null, classNames: []}", "set spec.clusterSelector or spec.classNames"},
	{"two add-ons of one name", "addons: [{name: web, chart: {path: a}}, {name: web, chart: {path: a}}]", "spec.addons[1]", "Duplicate value"},
	{"a hold of more than a day", "lifecycle: {holdSeconds: 86401}", "spec.lifecycle.holdSeconds", "86400"},
	{"an end of a hold that is neither", "lifecycle: {afterHold: Panic}", "spec.lifecycle.afterHold", "Unsupported value"},
	{"a lifecycle that says nothing", "lifecycle: {}", "spec.lifecycle", "at least 1 properties"},
	{"a deletion policy that is none", "deletionPolicy: Keep", "spec.deletionPolicy", "Unsupported value"},
	{"an interval that is too short", "updates: {interval: 59s}", "spec.updates.interval", "interval is from 1m to 24h"},
	{"an interval that is too long", "updates: {interval: 25h}", "spec.updates.interval", "interval is from 1m to 24h"},

	{"no source of a bundle", "source: {}", "set exactly one of path, configMap, secret, oci, http, github, git and flux"},
	{"two sources of a bundle", "source: {path: a, secret: {name: b}}", "set exactly one of path"},
	{"a version of a bundle's path", "source: {path: a, version: v1}", "version is for oci and github"},
	{"a bundle without a tag", "source: {" + inOCI + "}", "oci needs version"},
	{"a digest that is none of a bundle", "source: {path: a, digest: 'sha256:1'}", "spec.source.digest"},
	{"a bundle out of the root", "source: {path: ../a}", "path is relative"},
	{"a range and a digest of a bundle", "source: {" + pinned + ", version: '>=1'}", "spec.source", "with it, version is a tag"},
	{"a channel and a digest", "source: {" + pinned + ", clusterStack: docker-scs-1-31}", "spec.source", "with it, there is no clusterStack"},
	{"a bundle of a code host without a version", "source: {github: {url: 'https://github.com/example/web'}}",
		"spec.source", "github needs version (the tag) or clusterStack"},
	{"a range of a bundle without versions", "source: {configMap: {name: web}, version: 1.x}", "spec.source", "version is for oci and github"},
	{"a Cluster Stack of what has no versions", "source: {path: web, clusterStack: docker-scs-1-31}", "spec.source", "clusterStack is for oci and github"},
	{"a Cluster Stack and a version", "source: {" + inOCI + ", version: docker-scs-1-31-v1, clusterStack: docker-scs-1-31}",
		"spec.source", "set one of version and clusterStack"},
	{"a channel of nothing", "source: {" + inOCI + ", version: docker-scs-1-31-v1, channel: beta}", "spec.source", "channel is for clusterStack"},
	{"a Cluster Stack with a version in its name", "source: {" + inOCI + ", clusterStack: docker-scs-1-31-v1}", "spec.source.clusterStack", "should match"},
}

// refusedAddons are such fields of an add-on.
var refusedAddons = [][]string{
	{"a name that is no DNS label", "name: Web_Server", "spec.addons[0].name", "should match"},
	{"a name that is too long", "name: " + strings.Repeat("a", 54), "spec.addons[0].name", "Too long"},
	{"a point that no upgrade has", "lifecycle: {upgrade: BeforeLunch}", "spec.addons[0].lifecycle.upgrade", "Unsupported value", "BeforeControlPlane"},
	{"a point of what is there only for upgrades", "lifecycle: {upgrade: AfterWorkers, present: BeforeUpgrade}", "spec.addons[0].lifecycle", "set present or upgrade"},
	{"a deletion that is neither", "lifecycle: {onClusterDelete: Perhaps}", "spec.addons[0].lifecycle.onClusterDelete", "Unsupported value"},
	{"an add-on for no version of Kubernetes", "lifecycle: {kubernetesVersions: latest}",
		"spec.addons[0].lifecycle.kubernetesVersions", "is a range of versions"},
	{"a lifecycle of the add-on that says nothing", "lifecycle: {}", "spec.addons[0].lifecycle"},
	{"values that are no map", "values: [a]", "spec.addons[0].values", "must be of type object"},
	{"values from a Pod", "valuesFrom: [{kind: Pod, name: x}]", "spec.addons[0].valuesFrom[0].kind", "Unsupported value"},
	{"values from an object of a name that none has", "valuesFrom: [{kind: Secret, name: defaults}, {kind: Secret, name: Cloud_Config}]",
		"spec.addons[0].valuesFrom[1].name", "a template with {{ in it"},
	{"values from an object of another namespace", "valuesFrom: [{kind: Secret, name: kube-system/config}]",
		"spec.addons[0].valuesFrom[0].name", "a template with {{ in it"},
	{"values from an object whose template is too long", "valuesFrom: [{kind: Secret, name: '{{ .Cluster.metadata.name }}" + strings.Repeat("a", 226) + "'}]",
		"spec.addons[0].valuesFrom[0].name", "Too long"},
	{"an adoption policy that is none", "adoptionPolicy: Steal", "spec.addons[0].adoptionPolicy", "Unsupported value"},
	{"a template mode that is none", "valuesTemplateMode: Loose", "spec.addons[0].valuesTemplateMode", "Unsupported value"},
	{"a deadline that is too short", "progressDeadlineSeconds: 1", "spec.addons[0].progressDeadlineSeconds", "greater than or equal to 10"},
	{"a check without an expression", "readiness: [{apiVersion: v1, kind: Pod, expression: ''}]", "spec.addons[0].readiness[0].expression", "at least 1 chars"},
	{"a condition on a version that none has", "preconditions: [{expression: 'true', objects: [{key: gate, apiVersion: apps/v1/x, kind: Deployment, name: gate, namespace: a}]}]",
		"preconditions[0].objects[0].apiVersion"},
	{"a condition on a version that leads out", "preconditions: [{expression: 'true', objects: [{key: gate, apiVersion: ../v1, kind: Deployment, name: gate, namespace: a}]}]",
		"preconditions[0].objects[0].apiVersion: Inv"},
	{"a condition on a name that none has", "preconditions: [{expression: 'true', objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: a/b, namespace: a}]}]",
		"preconditions[0].objects[0].name"},
	{"a condition on no namespace", "preconditions: [{expression: 'true', objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: a/b}]}]",
		"preconditions[0].objects[0].namespace"},
	{"no chart", "chart: null", "spec.addons[0]", "set exactly one of chart, kustomization and manifests"},
	{"a range and a digest of files", "{chart: null, kustomization: {" + pinned + ", version: 1.17.x}}", "spec.addons[0].kustomization", "with it, version is a tag"},
	{"a tag that none can be", "{chart: null, kustomization: {" + inOCI + ", version: ..}}", "spec.addons[0].kustomization.version", "a tag, or a range"},
	{"an address that leads elsewhere", "{chart: null, kustomization: {http: {url: 'https://example.org/a%2f..%2Fb?c', digest: '" + otherDigest + "'}}}",
		"http.url", "no part of the path is '.' or '..'"},
	{"a range of what has no versions", "{chart: null, kustomization: {path: web, version: 1.x}}", "spec.addons[0].kustomization", "version is for oci and github"},
	{"a range of a version that is none", "{chart: null, kustomization: {" + inOCI + ", version: 1.x;2}}",
		"spec.addons[0].kustomization.version", "a tag, or a range of semantic versions"},
	{"files of a code host without a version", "{chart: null, kustomization: {github: {url: 'https://github.com/example/web', asset: web.tgz}}}",
		"spec.addons[0].kustomization", "github needs version (the tag) and github.asset"},
	{"a repository as it is cloned", "{chart: null, kustomization: {github: {url: 'https://github.com/example/web.git', asset: web.tgz}, version: 1.0.0}}",
		"spec.addons[0].kustomization.github.url", "without .git"},
	{"provenance of manifests", "{chart: null, manifests: {" + inOCI + ", version: 1.0.0, verify: {provenance: {keyring: {kind: ConfigMap, name: keys}}}}}",
		"verify is for oci with cosign, and for git with provenance"},
}

// refusedCharts are charts of an add-on.
var refusedCharts = [][]string{
	{"both version and versions", "{" + inOCI + ", version: 1.0.0, versions: [{kubernetes: 1.35.x, version: 1.0.0}]}", "spec.addons[0].chart", "in the place of version"},
	{"versions of a chart in a file", "{path: web, versions: [{kubernetes: 1.35.x, version: 1.0.0}]}", "spec.addons[0].chart", "versions is for oci, helm and github"},
	{"versions beside one digest", "{" + pinned + ", versions: [{kubernetes: 1.35.x, version: 1.0.0}]}", "spec.addons[0].chart", "each of them has its own digest"},
	{"a range in a row of versions", "{" + inOCI + ", versions: [{kubernetes: 1.35.x, version: 1.x}]}",
		"spec.addons[0].chart.versions[0].version", "exact semantic version"},
	{"a row for no version of Kubernetes", "{" + inOCI + ", versions: [{kubernetes: all, version: 1.0.0}]}",
		"spec.addons[0].chart.versions[0].kubernetes", "is a range of versions"},
	{"a range and a digest", "{" + pinned + ", version: 1.x}", "spec.addons[0].chart", "with it, version is an exact one"},
	{"a range without a version", "{" + inOCI + ", version: '='}", "spec.addons[0].chart.version", "or a range"},
	{"a version that is a blank", "{" + inOCI + ", version: ' '}", "spec.addons[0].chart.version", "or a range"},
	{"a version that is none", "{" + inOCI + ", version: 1.0;2.0}", "spec.addons[0].chart.version", "exact semantic version"},
	{"a version of a path", "{path: web, version: 1.0.0}", "spec.addons[0].chart", "version is for oci, helm and github"},
	{"an absolute path", "path: /etc/passwd", "spec.addons[0].chart.path", "path is relative"},
	{"a path that leads out", "path: a/../../b", "spec.addons[0].chart.path", "path is relative"},
	{"a key that can't be", "configMap: {name: x, key: a/b}", "spec.addons[0].chart.configMap.key", "should match"},
	{"a Secret that can't be", "{oci: {url: 'oci://registry.example.org/web', secretRef: {name: My_Secret}}, version: 1.0.0}",
		"spec.addons[0].chart.oci.secretRef.name", "should match"},
	{"a digest that is none", "oci: {url: 'oci://registry.example.org/web', digest: 'sha256:abc'}", "spec.addons[0].chart.oci.digest", "should match"},
	{"a registry without a version", inOCI, "spec.addons[0].chart", "oci needs version (the tag), versions or oci.digest"},
	{"a registry without a scheme", "{oci: {url: registry.example.org/web}, version: 1.0.0}", "spec.addons[0].chart.oci.url", "url is oci://"},
	{"a port that there isn't", "{oci: {url: 'oci://registry.example.org:99999/web'}, version: 1.0.0}",
		"spec.addons[0].chart.oci.url", "the port is from 1 to 65535"},
	{"a port that has no end", inHelm("https://charts.example.org:99999999999999999999/web"), "spec.addons[0].chart.helm.url", "the port is from 1 to 65535"},
	{"a repository's path that leads elsewhere", inHelm("https://charts.example.org/a/../b"),
		"spec.addons[0].chart.helm.url", "no part of the path is '.' or '..'"},
	{"a repository's path that ends elsewhere", inHelm("https://charts.example.org/a/%2E."),
		"spec.addons[0].chart.helm.url", "no part of the path is '.' or '..'"},
	{"an URL with half an escape", inHelm("https://charts.example.org/%zz"), "spec.addons[0].chart.helm.url", "two hexadecimal digits"},
	{"a host of dots", inHelm("https://../web"), "spec.addons[0].chart.helm.url", "url is https://host/path"},
	{"a Helm repository with a password in the URL", inHelm("https://user:secret@charts.example.org"), "spec.addons[0].chart.helm.url", "credentials go into secretRef"},

	{"a subject that is no expression", verified("{cosign: {keyless: {identities: [{issuer: i, subjectRegExp: (}], trustRoot: {kind: ConfigMap, name: trust}}}}"),
		"spec.addons[0].chart.verify.cosign.keyless.identities[0]", "missing closing"},
	{"no verification", verified("{}"), "set exactly one of cosign and provenance"},
	{"two verifications", verified("{cosign: {publicKeys: [{kind: ConfigMap, name: keys}]}, provenance: {keyring: {kind: ConfigMap, name: keys}}}"),
		"set exactly one of cosign and provenance"},
	{"a signature of nobody", verified("{cosign: {}}"), "set publicKeys, keyless, or both"},
	{"an identity without a subject", verified("{cosign: {keyless: {identities: [{issuer: i}], trustRoot: {kind: ConfigMap, name: keys}}}}"),
		"set exactly one of subject and subjectRegExp"},
	{"an identity with two subjects", verified("{cosign: {keyless: {identities: [{issuer: i, subject: s, subjectRegExp: s}], trustRoot: {kind: ConfigMap, name: keys}}}}"),
		"set exactly one of subject and subjectRegExp"},
	{"cosign of a Helm repository", "{helm: {url: 'https://charts.example.org', chart: web}, version: 1.0.0, verify: {cosign: {publicKeys: [{kind: ConfigMap, name: keys}]}}}",
		"verify.cosign is for oci, verify.provenance for oci, helm, github and git"},
	{"cosign of a path", "{path: web, verify: {cosign: {publicKeys: [{kind: ConfigMap, name: keys}]}}}",
		"verify.cosign is for oci, verify.provenance for oci, helm, github and git"},
	{"a keyring in another kind of object", verified("{provenance: {keyring: {kind: Node, name: keys}}}"), "supported values"},
}

// goodSpecs, goodAddons and goodCharts are such fields that the API server takes.
var (
	goodSpecs = [][]string{
		{"a bundle", "{source: {path: release}, addons: null}"},
		{"a bundle with charts", "source: {path: release}"},
		{"a bundle by range", "source: {" + inOCI + ", version: 1.x}"},
		{"a bundle by channel", "source: {" + inOCI + ", clusterStack: docker-scs-1-31, channel: beta}"},
		{"an interval", "updates: {interval: 1h30m}"},
		{"a selector and a class", "classNames: [small]"},
		{"a class", "{classNames: [small], clusterSelector: null}"},
		{"a dependency", "addons: [{name: web, chart: {path: charts/web.tgz}}, {name: app, chart: {path: app}, dependsOn: [web]}]"},
	}
	goodAddons = [][]string{
		{"signed commits of manifests", "{chart: null, manifests: {git: {url: 'https://example.org/a.git', branch: main}, verify: {provenance: {keyring: {kind: ConfigMap, name: keys}}}}}"},
		{"values by a template", "valuesFrom: [{kind: Secret, name: a}, {kind: Secret, name: a.b-c}, {kind: Secret, name: '{{ .Cluster.metadata.name }}-config'}, " +
			"{kind: Secret, name: 'a-{{ .Member.name }}'}, {kind: Secret, name: '{{ .Cluster.metadata.name }}" + strings.Repeat("a", 225) + "'}]"},
		{"files by tag and digest", "{chart: null, kustomization: {" + pinned + ", version: docker-scs-1-31-v1}}"},
		{"files by range", "{chart: null, kustomization: {" + inOCI + ", version: '>=1.2.0-0 <2 || ^4.1'}}"},
		{"dots in a query", "{chart: null, kustomization: {http: {url: 'https://example.org/a?b=/../', digest: '" + otherDigest + "'}}}"},
	}
	goodCharts = [][]string{
		{"signed commits", "{git: {url: 'https://example.org/a.git', branch: main}, verify: {provenance: {keyring: {kind: ConfigMap, name: keys}}}}"},
		{"a registry by version and digest", "{" + pinned + ", version: 1.17.4-rc.1+build.2}"},
		{"a registry with a port", "{oci: {url: 'oci://registry.example.org:65535/web'}, version: '=1.2'}"},
		{"a registry by version", "{oci: {url: 'oci://registry.example.org:5000/charts/web'}, version: v1.17.4-rc.1+build.2}"},
		{"a registry by range", "{oci: {url: 'oci://registry.example.org:5000/charts/web'}, version: '>=1.2.0-0 <2 || ^4.1'}"},
		{"a registry by digest", "oci: {url: 'oci://[::1]:5000/web', digest: '" + otherDigest + "'}"},
		{"a Helm repository by range", "{helm: {url: 'https://charts.example.org', chart: web}, version: ~1.17}"},
		{"a Helm repository", inHelm("https://charts.example.org/stable/")},
		{"a Helm repository in the clear", "{helm: {url: 'http://charts', chart: web, plainHTTP: true}, version: 1.0.0}"},
		{"dots that are no way out", inHelm("https://charts.example.org/..a/b../.../.c")},
		{"a name in a path of bytes", inHelm("https://charts.example.org/a%20b")},
		{"a subject that is an expression", verified("{cosign: {keyless: {identities: [{issuer: i, subjectRegExp: 'https://github[.]com/example/.*'}], trustRoot: {kind: ConfigMap, name: trust}}}}")},
		{"keys", verified("{cosign: {publicKeys: [{kind: ConfigMap, name: keys}]}}")},
		{"a keyring of a registry", verified("{provenance: {keyring: {kind: ConfigMap, name: keys}}}")},
		{"a keyring", "{helm: {url: 'https://charts.example.org', chart: web}, version: 1.0.0, verify: {provenance: {keyring: {kind: ConfigMap, name: keys}}}}"},
	}
)

func inHelm(url string) string { return "{helm: {url: '" + url + "', chart: web}, version: 1.0.0}" }

func verified(by string) string { return "{" + inOCI + ", version: 1.0.0, verify: " + by + "}" }

// TestAPIRules asks the API server itself: no webhook and no manager runs.
func TestAPIRules(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for _, rules := range []struct {
		refused, good [][]string
		set           func(spec, addon, fields map[string]any)
	}{
		{refusedSpecs, goodSpecs, func(spec, _, fields map[string]any) { setFields(spec, fields) }},
		{refusedAddons, goodAddons, func(_, addon, fields map[string]any) { setFields(addon, fields) }},
		{refusedCharts, goodCharts, func(_, addon, fields map[string]any) { addon["chart"] = fields }},
	} {
		for _, row := range append(rules.refused, rules.good...) {
			t.Run(row[0], func(t *testing.T) {
				g, fields := NewWithT(t), map[string]any{}
				g.Expect(yaml.Unmarshal([]byte(row[1]), &fields)).To(Succeed())
				s := asUnstructured(tn.newStack("platform", nil, tn.addon("web", "web-1.0.0")))
				spec := s.Object["spec"].(map[string]any)
				rules.set(spec, spec["addons"].([]any)[0].(map[string]any), fields)
				err := world.hub.Create(t.Context(), s, client.DryRunAll)
				if len(row) == 2 {
					g.Expect(err).NotTo(HaveOccurred())
				}
				for _, part := range row[2:] {
					g.Expect(err).To(MatchError(ContainSubstring(part)), "the error is to name the field and the rule")
				}
			})
		}
	}
	t.Run("names of stacks", func(t *testing.T) {
		g := NewWithT(t)
		for length, refused := range map[int]bool{52: false, 53: true} {
			err := world.hub.Create(t.Context(), tn.newStack(strings.Repeat("a", length), nil, tn.addon("web", "web")), client.DryRunAll)
			g.Expect(err != nil).To(Equal(refused), "%d characters: %v", length, err)
		}
	})
	t.Run("a ClusterAddon stays with its Cluster", func(t *testing.T) {
		g := NewWithT(t)
		ca := tn.clusterAddon("prod")
		ca.Spec.ClusterName = "prod"
		g.Expect(world.hub.Create(t.Context(), ca)).To(Succeed())
		ca.Spec.ClusterName = "other"
		g.Expect(world.hub.Update(t.Context(), ca)).To(MatchError(ContainSubstring("clusterName is immutable")))
		ca.Spec.ClusterName = "prod"
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}, {Name: "a", Revision: "a-2"}}
		g.Expect(world.hub.Update(t.Context(), ca)).To(MatchError(ContainSubstring("Duplicate value")), "a stack has one revision on a cluster")
	})
}

// setFields sets fields of an object, and takes those off that are null.
func setFields(object, fields map[string]any) {
	maps.Copy(object, fields)
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
}
