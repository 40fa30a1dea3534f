// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestAPIRules asks the API server itself: no webhook and no manager runs.
func TestAPIRules(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for name, tc := range map[string]struct {
		spoil func(*addonsv1.AddonStack)
		says  []string
	}{
		"no selector": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.ClusterSelector = nil },
			says:  []string{"set spec.clusterSelector or spec.classNames"},
		},
		"an empty list of classes and no selector": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.ClusterSelector, s.Spec.ClassNames = nil, []string{} },
			says:  []string{"set spec.clusterSelector or spec.classNames"},
		},
		"no add-ons": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons = []addonsv1.Addon{} },
			says:  []string{"spec.addons", "set spec.addons, or spec.source"},
		},
		"two add-ons of one name": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons = append(s.Spec.Addons, s.Spec.Addons[0]) },
			says:  []string{"spec.addons[1]", "Duplicate value"},
		},
		"a name that is no DNS label": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Name = "Web_Server" },
			says:  []string{"spec.addons[0].name", "should match"},
		},
		"a name that is too long": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Name = strings.Repeat("a", 54) },
			says:  []string{"spec.addons[0].name", "Too long"},
		},
		"a stack's name that is too long": {
			spoil: func(s *addonsv1.AddonStack) { s.Name = strings.Repeat("a", 53) },
			says:  []string{"metadata.name may have at most 52 characters"},
		},
		"an add-on that depends on itself": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].DependsOn = []string{"web"} },
			says:  []string{"spec.addons[0]", "dependsOn names the add-on itself"},
		},
		"a point that no upgrade has": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{Upgrade: "BeforeLunch"}
			},
			says: []string{"spec.addons[0].lifecycle.upgrade", "Unsupported value", "BeforeControlPlane"},
		},
		"a point of what is there only for upgrades": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeAfterWorkers, Present: addonsv1.PresentBeforeUpgrade}
			},
			says: []string{"spec.addons[0].lifecycle", "set present or upgrade"},
		},
		"a deletion that is neither": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{OnClusterDelete: "Perhaps"}
			},
			says: []string{"spec.addons[0].lifecycle.onClusterDelete", "Unsupported value"},
		},
		"a hold of more than a day": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Lifecycle = &addonsv1.StackLifecycle{HoldSeconds: ptr.To[int32](86401)}
			},
			says: []string{"spec.lifecycle.holdSeconds", "86400"},
		},
		"an end of a hold that is neither": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Lifecycle = &addonsv1.StackLifecycle{AfterHold: "Panic"} },
			says:  []string{"spec.lifecycle.afterHold", "Unsupported value"},
		},
		"a lifecycle that says nothing": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Lifecycle = &addonsv1.StackLifecycle{} },
			says:  []string{"spec.lifecycle", "at least 1 properties"},
		},
		"both version and versions": {
			spoil: fromRows("1.0.0", "", addonsv1.ChartVersion{Kubernetes: "1.35.x", Version: "1.0.0"}),
			says:  []string{"spec.addons[0].chart", "in the place of version"},
		},
		"versions of a chart in a file": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Chart.Versions = []addonsv1.ChartVersion{{Kubernetes: "1.35.x", Version: "1.0.0"}}
			},
			says: []string{"spec.addons[0].chart", "versions is for oci, helm and github"},
		},
		"versions beside one digest": {
			spoil: fromRows("", "sha256:"+strings.Repeat("0", 64), addonsv1.ChartVersion{Kubernetes: "1.35.x", Version: "1.0.0"}),
			says:  []string{"spec.addons[0].chart", "each of them has its own digest"},
		},
		"a range in a row of versions": {
			spoil: fromRows("", "", addonsv1.ChartVersion{Kubernetes: "1.35.x", Version: "1.x"}),
			says:  []string{"spec.addons[0].chart.versions[0].version", "exact semantic version"},
		},
		"a row for no version of Kubernetes": {
			spoil: fromRows("", "", addonsv1.ChartVersion{Kubernetes: "all", Version: "1.0.0"}),
			says:  []string{"spec.addons[0].chart.versions[0].kubernetes", "is a range of versions"},
		},
		"an add-on for no version of Kubernetes": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{KubernetesVersions: "latest"}
			},
			says: []string{"spec.addons[0].lifecycle.kubernetesVersions", "is a range of versions"},
		},
		"a lifecycle of the stack that says nothing": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{} },
			says:  []string{"spec.addons[0].lifecycle"},
		},
		"no chart": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Chart = addonsv1.ChartSource{} },
			says:  []string{"spec.addons[0]", "set exactly one of chart, kustomization and manifests"},
		},
		"two charts": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Chart.Secret = &addonsv1.ArtifactReference{Name: "x"}
			},
			says: []string{"spec.addons[0].chart", "set exactly one of path, configMap, secret, oci, helm, http and github"},
		},
		"a range and a digest": {
			spoil: fromRegistry("oci://registry.example.org/web", "1.x", someDigest),
			says:  []string{"spec.addons[0].chart", "with it, version is an exact one"},
		},
		"a range and a digest of files": {
			spoil: withFiles(addonsv1.ArtifactSource{OCI: pinnedOCI(), Version: "1.17.x"}),
			says:  []string{"spec.addons[0].kustomization", "with it, version is a tag"},
		},
		"a range and a digest of a bundle": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: pinnedOCI(), Version: ">=1"}}),
			says:  []string{"spec.source", "with it, version is a tag, and there is no clusterStack"},
		},
		"a channel and a digest": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: pinnedOCI()}, ClusterStack: "docker-scs-1-31"}),
			says:  []string{"spec.source", "with it, version is a tag, and there is no clusterStack"},
		},
		"a name for a version": {
			spoil: fromRegistry("oci://registry.example.org/web", "latest", ""),
			says:  []string{"spec.addons[0].chart.version", "exact semantic version"},
		},
		"a range without a version": {
			spoil: fromRegistry("oci://registry.example.org/web", "=", ""),
			says:  []string{"spec.addons[0].chart.version", "or a range"},
		},
		"a version that is a blank": {
			spoil: fromRegistry("oci://registry.example.org/web", " ", ""),
			says:  []string{"spec.addons[0].chart.version", "or a range"},
		},
		"a tag that none can be": {
			spoil: withFiles(inOCI("..")),
			says:  []string{"spec.addons[0].kustomization.version", "a tag, or a range"},
		},
		"a port that there isn't": {
			spoil: fromRegistry("oci://registry.example.org:99999/web", "1.0.0", ""),
			says:  []string{"spec.addons[0].chart.oci.url", "the port is from 1 to 65535"},
		},
		"a port that has no end": {
			spoil: fromRepository("https://charts.example.org:99999999999999999999/web", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "the port is from 1 to 65535"},
		},
		"a repository's path that leads elsewhere": {
			spoil: fromRepository("https://charts.example.org/a/../b", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "no part of the path is '.' or '..'"},
		},
		"a repository's path that ends elsewhere": {
			spoil: fromRepository("https://charts.example.org/a/%2E.", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "no part of the path is '.' or '..'"},
		},
		"an address that leads elsewhere": {
			spoil: withFiles(addonsv1.ArtifactSource{HTTP: &addonsv1.HTTPSource{URL: "https://example.org/a%2f..%2Fb?c", Digest: "sha256:" + strings.Repeat("0", 64)}}),
			says:  []string{"http.url", "no part of the path is '.' or '..'"},
		},
		"an URL with half an escape": {
			spoil: fromRepository("https://charts.example.org/%zz", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "two hexadecimal digits"},
		},
		"a host of dots": {
			spoil: fromRepository("https://../web", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "url is https://host/path"},
		},
		"a Secret that can't be": {
			spoil: func(s *addonsv1.AddonStack) {
				fromRegistry("oci://registry.example.org/web", "1.0.0", "")(s)
				s.Spec.Addons[0].Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "My_Secret"}
			},
			says: []string{"spec.addons[0].chart.oci.secretRef.name", "should match"},
		},
		"a key that can't be": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Chart = addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "x", Key: "a/b"}}
			},
			says: []string{"spec.addons[0].chart.configMap.key", "should match"},
		},
		"a subject that is no expression": {
			spoil: signedBy("("),
			says:  []string{"spec.addons[0].chart.verify.cosign.keyless.identities[0]", "missing closing"},
		},
		"an absolute path": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Chart.Path = "/etc/passwd" },
			says:  []string{"spec.addons[0].chart.path", "path is relative"},
		},
		"a path that leads out": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Chart.Path = "a/../../b" },
			says:  []string{"spec.addons[0].chart.path", "path is relative"},
		},
		"a version of a path": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Chart.Version = "1.0.0" },
			says:  []string{"spec.addons[0].chart", "version is for oci, helm and github"},
		},
		"a registry without a version": {
			spoil: fromRegistry("oci://registry.example.org/web", "", ""),
			says:  []string{"spec.addons[0].chart", "oci needs version (the tag), versions or oci.digest"},
		},
		"a registry with a tag in the URL": {
			spoil: fromRegistry("oci://registry.example.org/web:1.0.0", "1.0.0", ""),
			says:  []string{"spec.addons[0].chart.oci.url", "without tag and digest"},
		},
		"a registry without a scheme": {
			spoil: fromRegistry("registry.example.org/web", "1.0.0", ""),
			says:  []string{"spec.addons[0].chart.oci.url", "url is oci://"},
		},
		"a digest that is none": {
			spoil: fromRegistry("oci://registry.example.org/web", "", "sha256:abc"),
			says:  []string{"spec.addons[0].chart.oci.digest", "should match"},
		},
		"a version that is none": {
			spoil: fromRegistry("oci://registry.example.org/web", "1.0;2.0", ""),
			says:  []string{"spec.addons[0].chart.version", "exact semantic version"},
		},
		"a range of what has no versions": {
			spoil: withFiles(addonsv1.ArtifactSource{Path: "web", Version: "1.x"}),
			says:  []string{"spec.addons[0].kustomization", "version is for oci and github"},
		},
		"a range of a version that is none": {
			spoil: withFiles(addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/web"}, Version: "1.x;2"}),
			says:  []string{"spec.addons[0].kustomization.version", "a tag, or a range of semantic versions"},
		},
		"files of a code host without a version": {
			spoil: withFiles(addonsv1.ArtifactSource{GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/web", Asset: "web.tgz"}}),
			says:  []string{"spec.addons[0].kustomization", "github needs version (the tag) and github.asset"},
		},
		"a repository as it is cloned": {
			spoil: withFiles(addonsv1.ArtifactSource{GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/web.git", Asset: "web.tgz"}, Version: "1.0.0"}),
			says:  []string{"spec.addons[0].kustomization.github.url", "without .git"},
		},
		"a bundle of a code host without a version": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/web"}}}),
			says:  []string{"spec.source", "github needs version (the tag) or clusterStack"},
		},
		"a range of a bundle without versions": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "web"}, Version: "1.x"}}),
			says:  []string{"spec.source", "version and clusterStack are for oci and github"},
		},
		"a Cluster Stack of what has no versions": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "web"}, ClusterStack: "docker-scs-1-31"}),
			says:  []string{"spec.source", "version and clusterStack are for oci and github"},
		},
		"a Cluster Stack and a version": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: inOCI("docker-scs-1-31-v1"), ClusterStack: "docker-scs-1-31"}),
			says:  []string{"spec.source", "set one of version and clusterStack"},
		},
		"a channel of nothing": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: inOCI("docker-scs-1-31-v1"), Channel: "beta"}),
			says:  []string{"spec.source", "channel is for clusterStack"},
		},
		"a Cluster Stack with a version in its name": {
			spoil: withBundle(addonsv1.BundleSource{ArtifactSource: inOCI(""), ClusterStack: "docker-scs-1-31-v1"}),
			says:  []string{"spec.source.clusterStack", "should match"},
		},
		"an interval that is too short": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Updates = updatesEvery(59 * time.Second) },
			says:  []string{"spec.updates.interval", "interval is from 1m to 24h"},
		},
		"an interval that is too long": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Updates = updatesEvery(25 * time.Hour) },
			says:  []string{"spec.updates.interval", "interval is from 1m to 24h"},
		},
		"a Helm repository without a version": {
			spoil: fromRepository("https://charts.example.org", "", false),
			says:  []string{"spec.addons[0].chart", "helm and github need version"},
		},
		"a Helm repository without TLS": {
			spoil: fromRepository("http://charts.example.org", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm", "needs plainHTTP: true"},
		},
		"a Helm repository with a password in the URL": {
			spoil: fromRepository("https://user:secret@charts.example.org", "1.0.0", false),
			says:  []string{"spec.addons[0].chart.helm.url", "credentials go into secretRef"},
		},
		"values that are no map": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Values = &apiextensionsv1.JSON{Raw: []byte(`["a"]`)}
			},
			says: []string{"spec.addons[0].values", "must be of type object"},
		},
		"values from a Pod": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].ValuesFrom = []addonsv1.ValuesReference{{Kind: "Pod", Name: "x"}}
			},
			says: []string{"spec.addons[0].valuesFrom[0].kind", "Unsupported value"},
		},
		"values from an object of a name that none has": {
			spoil: withSecrets("defaults", "Cloud_Config"),
			says:  []string{"spec.addons[0].valuesFrom[1].name", "a template with {{ in it"},
		},
		"values from an object of another namespace": {
			spoil: withSecrets("kube-system/config"),
			says:  []string{"spec.addons[0].valuesFrom[0].name", "a template with {{ in it"},
		},
		"values from an object whose template is too long": {
			spoil: withSecrets("{{ .Cluster.metadata.name }}" + strings.Repeat("a", 226)),
			says:  []string{"spec.addons[0].valuesFrom[0].name", "Too long"},
		},
		"a deletion policy that is none": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.DeletionPolicy = "Keep" },
			says:  []string{"spec.deletionPolicy", "Unsupported value"},
		},
		"an adoption policy that is none": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].AdoptionPolicy = "Steal" },
			says:  []string{"spec.addons[0].adoptionPolicy", "Unsupported value"},
		},
		"a template mode that is none": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].ValuesTemplateMode = "Loose" },
			says:  []string{"spec.addons[0].valuesTemplateMode", "Unsupported value"},
		},
		"a deadline that is too short": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].ProgressDeadlineSeconds = ptr.To[int32](1) },
			says:  []string{"spec.addons[0].progressDeadlineSeconds", "greater than or equal to 10"},
		},
		"a check without an expression": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.Addons[0].Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "Pod"}}
			},
			says: []string{"spec.addons[0].readiness[0].expression", "at least 1 chars"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tn := tn.in(t)
			g := NewWithT(t)
			s := tn.newStack("platform", nil, tn.addon("web", "web-1.0.0"))
			tc.spoil(s)
			err := world.hub.Create(t.Context(), s, client.DryRunAll)
			g.Expect(err).To(HaveOccurred(), "the API server is to refuse it")
			for _, part := range tc.says {
				g.Expect(err.Error()).To(ContainSubstring(part), "the error is to name the field and the rule")
			}
		})
	}
	for name, right := range map[string]func(*addonsv1.AddonStack){
		"a registry by version and digest": fromRegistry("oci://registry.example.org/web", "1.17.4-rc.1+build.2", someDigest),
		"values by a template":             withSecrets("a", "a.b-c", "{{ .Cluster.metadata.name }}-config", "a-{{ .Member.name }}", "{{ .Cluster.metadata.name }}"+strings.Repeat("a", 225)),
		"a registry with a port":           fromRegistry("oci://registry.example.org:65535/web", "=1.2", ""),
		"files by tag and digest":          withFiles(addonsv1.ArtifactSource{OCI: pinnedOCI(), Version: "docker-scs-1-31-v1"}),
		"dots that are no way out":         fromRepository("https://charts.example.org/..a/b../.../.c", "v1.0.0", false),
		"dots in a query":                  withFiles(addonsv1.ArtifactSource{HTTP: &addonsv1.HTTPSource{URL: "https://example.org/a?b=/../", Digest: "sha256:" + strings.Repeat("0", 64)}}),
		"a name in a path of bytes":        fromRepository("https://charts.example.org/a%20b", "v1.0.0", false),
		"a subject that is an expression":  signedBy("https://github[.]com/example/.*"),
		"a registry by version":            fromRegistry("oci://registry.example.org:5000/charts/web", "v1.17.4-rc.1+build.2", ""),
		"a registry by range":              fromRegistry("oci://registry.example.org:5000/charts/web", ">=1.2.0-0 <2 || ^4.1", ""),
		"a Helm repository by range":       fromRepository("https://charts.example.org", "~1.17", false),
		"files by range":                   withFiles(inOCI(">=1.2.0-0 <2 || ^4.1")),
		"a bundle by range":                withBundle(addonsv1.BundleSource{ArtifactSource: inOCI("1.x")}),
		"a bundle by channel":              withBundle(addonsv1.BundleSource{ArtifactSource: inOCI(""), ClusterStack: "docker-scs-1-31", Channel: "beta"}),
		"an interval":                      func(s *addonsv1.AddonStack) { s.Spec.Updates = updatesEvery(90 * time.Minute) },
		"a registry by digest":             fromRegistry("oci://[::1]:5000/web", "", "sha256:"+strings.Repeat("a", 64)),
		"a Helm repository":                fromRepository("https://charts.example.org/stable/", "1.0.0", false),
		"a Helm repository in the clear":   fromRepository("http://charts", "1.0.0", true),
	} {
		t.Run(name, func(t *testing.T) {
			tn := tn.in(t)
			s := tn.newStack("platform", nil, tn.addon("web", "web"))
			right(s)
			NewWithT(t).Expect(world.hub.Create(t.Context(), s, client.DryRunAll)).To(Succeed())
		})
	}
	t.Run("what is right", func(t *testing.T) {
		tn := tn.in(t)
		g := NewWithT(t)
		s := tn.newStack(strings.Repeat("a", 52), nil, tn.addon("web", "charts/web.tgz"), tn.addon("app", "app", after("web")))
		s.Spec.ClassNames = []string{"small"}
		g.Expect(world.hub.Create(t.Context(), s, client.DryRunAll)).To(Succeed())
		s.Spec.ClusterSelector, s.ResourceVersion = nil, ""
		g.Expect(world.hub.Create(t.Context(), s, client.DryRunAll)).To(Succeed(), "classNames alone select")
	})
	t.Run("a ClusterAddon stays with its Cluster", func(t *testing.T) {
		tn := tn.in(t)
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

// withSecrets takes values from Secrets of these names.
func withSecrets(names ...string) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) { s.Spec.Addons[0].ValuesFrom = fromSecrets(names...) }
}

const someDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func pinnedOCI() *addonsv1.OCISource {
	return &addonsv1.OCISource{URL: "oci://registry.example.org/web", Digest: someDigest}
}

// signedBy verifies the chart of the first add-on.
func signedBy(subject string) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) {
		fromRegistry("oci://registry.example.org/web", "1.0.0", "")(s)
		s.Spec.Addons[0].Chart.Verify = &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{Keyless: &addonsv1.KeylessVerification{
			Identities: []addonsv1.CertificateIdentity{{Issuer: "https://issuer.example.org", SubjectRegExp: subject}},
			TrustRoot:  addonsv1.TrustReference{Kind: "ConfigMap", Name: "trust"},
		}}}
	}
}

// fromRegistry sets the chart of the first add-on.
func fromRegistry(url, version, digest string) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0].Chart = addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: url, Digest: digest}, Version: version}
	}
}

// fromRows sets the chart of the first add-on, with versions.
func fromRows(version, digest string, rows ...addonsv1.ChartVersion) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) {
		fromRegistry("oci://registry.example.org/web", version, digest)(s)
		s.Spec.Addons[0].Chart.Versions = rows
	}
}

// fromRepository sets the chart of the first add-on.
func fromRepository(url, version string, plainHTTP bool) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0].Chart = addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: url, Chart: "web", PlainHTTP: &plainHTTP}, Version: version}
	}
}

// withFiles makes a kustomization of the first add-on.
func withFiles(at addonsv1.ArtifactSource) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) {
		s.Spec.Addons[0].Chart = addonsv1.ChartSource{}
		s.Spec.Addons[0].Kustomization = &addonsv1.KustomizationSource{ArtifactSource: at}
	}
}

// withBundle sets spec.source.
func withBundle(bundle addonsv1.BundleSource) func(*addonsv1.AddonStack) {
	return func(s *addonsv1.AddonStack) { s.Spec.Source = &bundle }
}

func inOCI(version string) addonsv1.ArtifactSource {
	return addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/web"}, Version: version}
}

// updatesEvery is spec.updates with that interval.
func updatesEvery(interval time.Duration) *addonsv1.Updates {
	return &addonsv1.Updates{Interval: &metav1.Duration{Duration: interval}}
}
