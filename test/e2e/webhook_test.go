// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestWebhook lets a process that serves webhooks alone, as config/shared does, look
// after admission for one namespace of the management cluster. Its user has the rights
// of config/rbac/webhooks.
func TestWebhook(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	path := tn.writeChart("good", "1.0.0", configMapChart)
	tn.makeStack("stored-before", nil, tn.addon("a", path, after("nobody")))

	start := world.hub.mark(t)
	tn.serveWebhooks()

	tn.makeStack("around", nil, tn.addon("back", path, after("new/web"))) // which may come later
	for name, tc := range map[string]struct {
		spoil func(*addonsv1.AddonStack)
		says  string
	}{
		"invalid selector": {
			spoil: func(s *addonsv1.AddonStack) {
				s.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is"}}
			},
			says: "spec.clusterSelector",
		},
		"dependency cycle with another stack": {
			spoil: func(s *addonsv1.AddonStack) { s.Spec.Addons[0].DependsOn = []string{"around/back"} },
			says:  "new/web -> around/back -> new/web",
		},
	} {
		tn.run(name, func(t *testing.T, tn *tenant) {
			s := tn.newStack("new", nil, tn.addon("web", path))
			tc.spoil(s)
			tn.Expect(world.hub.Create(t.Context(), s)).To(MatchError(ContainSubstring(tc.says)), "kubectl apply is to fail at once, and name the field")
		})
	}
	tn.run("what was stored before can be edited", func(t *testing.T, tn *tenant) {
		s := tn.newStack("stored-before", nil)
		tn.Expect(world.hub.Get(t.Context(), tn.key("stored-before"), s)).To(Succeed())
		s.Labels = labels("a=b")
		tn.Expect(world.hub.Update(t.Context(), s)).To(Succeed(), "an old mistake doesn't stop an edit that has nothing to do with it")
		s.Spec.Addons = append(s.Spec.Addons, tn.addon("b", path, after("nobody-else")))
		tn.Expect(world.hub.Update(t.Context(), s)).To(MatchError(ContainSubstring("nobody-else")), "a new mistake does")
	})
	t.Run("versions of Kubernetes", func(t *testing.T) { tn.in(t).refuseVersions(t) })
	serving := start.requests(t, tn.user+":webhooks")
	NewWithT(t).Expect(described(serving, func(e auditEvent) bool {
		isCounted := e.ObjectRef != nil && e.ObjectRef.Resource == "clusters" && e.Verb == "list" // those that no instance manages
		return e.ObjectRef != nil && !isCounted && !slices.Contains([]string{"", "addonstacks", "clusteraddons", "providerinstances"}, e.ObjectRef.Resource)
	})).To(BeEmpty(), "it looks at instances, at stacks that depend on each other, at what clusters run, and at which Clusters there are")
	NewWithT(t).Expect(described(serving, func(e auditEvent) bool { return audit.Forbidden(&e) })).
		To(BeEmpty(), "it asks for nothing that it may not have")
}

// refuseVersions tries versions of a Cluster whose add-ons say which they are for.
func (tn *tenant) refuseVersions(t *testing.T) {
	c := newCluster(tn.namespace, "prod", nil)
	c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "small"}, Version: "v1.35.1"}
	tn.create(c)
	to := func(version string, more ...func(*clusterv1.Cluster)) error {
		wanted := &clusterv1.Cluster{}
		tn.Expect(world.hub.Get(t.Context(), tn.key("prod"), wanted)).To(Succeed())
		wanted.Spec.Topology.Version = version
		for _, m := range more {
			m(wanted)
		}
		return world.hub.Update(t.Context(), wanted, client.DryRunAll)
	}
	tn.Expect(to("v1.37.0")).To(Succeed(), "nobody knows of add-ons")

	ca := &addonsv1.ClusterAddon{ObjectMeta: tn.named("prod"), Spec: addonsv1.ClusterAddonSpec{ClusterName: "prod"}}
	tn.create(ca)
	ca.Status.KubernetesVersions = &addonsv1.KubernetesVersions{Ranges: []addonsv1.KubernetesRange{
		{Stack: "platform", Addon: "cni", Field: "lifecycle.kubernetesVersions", Versions: "<1.37 || 1.38.x"},
	}}
	tn.Expect(world.hub.Status().Update(t.Context(), ca)).To(Succeed())
	const says = "add-on cni of AddonStack platform: lifecycle.kubernetesVersions <1.37 || 1.38.x"
	tn.Expect(to("v1.36.4")).To(Succeed(), "all are for that")
	tn.Expect(to("v1.37.0")).To(MatchError(And(ContainSubstring("spec.topology.version"), ContainSubstring(says))))
	tn.Expect(to("v1.38.0")).To(MatchError(ContainSubstring("1.37: "+says)), "a control plane takes each minor version on its way")
	skip := func(version string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Annotations = map[string]string{addonsv1.SkipGatesAnnotation: version} }
	}
	tn.Expect(to("v1.37.0", skip("v1.37.0"))).To(Succeed(), "who insists gets it")
	tn.Expect(to("v1.37.1", skip("v1.37.0"))).NotTo(Succeed(), "and nothing else")
	tn.Expect(to("v1.37.0", func(c *clusterv1.Cluster) { c.Spec.Topology.ClassRef.Name = "large" })).To(Succeed(), "another class may have other add-ons")
	tn.Expect(to("v1.35.1", func(c *clusterv1.Cluster) { c.Labels = labels("a=b") })).To(Succeed(), "other changes are nobody's business")
	tn.remove(c)
	tn.remove(ca)
}

// webhookAt is the project's webhook configuration, for one namespace, served
// at an address.
func (tn *tenant) webhookAt(t *testing.T, address string, authority []byte) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/webhook/manifests.yaml"))
	must.Succeed(t, err)
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	validating := data[bytes.LastIndex(data, []byte("\n---\n"))+1:]
	must.Succeed(t, yaml.Unmarshal(validating, configuration))
	configuration.Name = tn.namespace
	for i := range configuration.Webhooks {
		w := &configuration.Webhooks[i]
		w.ClientConfig = admissionv1.WebhookClientConfig{
			URL: ptr.To("https://" + address + *w.ClientConfig.Service.Path), CABundle: authority,
		}
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: tn.namespace}}
	}
	t.Cleanup(func() { tn.remove(configuration) })
	return configuration
}

// servingWebhooks is a process as config/shared runs it, which the API server asks about a tenant's namespace.
type servingWebhooks struct {
	*manager
	webhooks, hooks string // addresses
}

func (s *servingWebhooks) addressOf(path string) string {
	if strings.HasPrefix(path, "/hooks.") {
		return s.hooks
	}
	return s.webhooks
}

// serveWebhooks starts such a process, and returns when the API server asks it.
func (tn *tenant) serveWebhooks(flags ...string) *servingWebhooks {
	tn.t.Helper()
	t := tn.t
	s := &servingWebhooks{webhooks: chandler.FreeAddress(t), hooks: chandler.FreeAddress(t)}
	certificate, dir := mustCertificate(t), t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": certificate.chain, "tls.key": certificate.key} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	server, err := world.hub.AddUser(tn.user + ":webhooks")
	must.Succeed(t, err)
	role := shippedRole(t, "webhooks/role.yaml")
	world.hub.grant(t, "", role.Name+"-"+tn.namespace, user(tn.user+":webhooks"), role.Rules...)
	s.manager = launch(t, tn.namespace+"-webhooks", server.Kubeconfig, append([]string{
		"--run=webhooks", "--webhook-cert-dir=" + dir, "--webhook-port=" + portOf(t, s.webhooks), "--hook-port=" + portOf(t, s.hooks),
	}, flags...)...)
	tn.create(tn.webhookAt(t, s.webhooks, certificate.chain))
	poll(t, patience, "the API server is to ask the webhook", func() error {
		wrong := tn.newStack("probe", nil, tn.addon("a", "a", after("nobody")))
		if world.hub.Create(t.Context(), wrong, client.DryRunAll) == nil {
			return errors.New("it lets a wrong stack through")
		}
		return world.hub.Create(t.Context(), tn.newStack("probe", nil, tn.addon("a", "a")), client.DryRunAll)
	})
	return s
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must.Succeed(t, err)
	return port
}
