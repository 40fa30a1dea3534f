// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/profiles"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

func (h *hub) profileName(name string) multicluster.ClusterName {
	return fleet.NameOf(profiles.Name, h.name(name))
}

// profileNamed is a ClusterProfile of the hub.
func (h *hub) profileNamed(name string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: map[string]string{inventoryv1alpha1.LabelClusterManagerKey: "test"}},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "test"}},
	}
}

// provide gives a ClusterProfile one access provider to the workload cluster, which changes may spoil.
func (h *hub) provide(ctx context.Context, p *inventoryv1alpha1.ClusterProfile, provider, config string, changes ...func(*clientcmdv1.Cluster)) error {
	cluster := clientcmdv1.Cluster{Server: h.workload.Config().Host, CertificateAuthorityData: h.workload.Config().CAData}
	if config != "" {
		cluster.Extensions = []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(config)}}}
	}
	for _, change := range changes {
		change(&cluster)
	}
	p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: provider, Cluster: cluster}}
	p.Status.Properties = []inventoryv1alpha1.Property{{Name: "region", Value: "north"}}
	p.Status.Conditions = []metav1.Condition{}
	return h.Status().Update(ctx, p)
}

// profile makes a ClusterProfile with one access provider.
func (h *hub) profile(t *testing.T, name, provider, config string, changes ...func(*clientcmdv1.Cluster)) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	p := h.profileNamed(name)
	h.create(t, p)
	must.Succeed(t, h.provide(t.Context(), p, provider, config, changes...))
	return p
}

func (h *hub) secret(t *testing.T, name, key string, data []byte) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}, Data: map[string][]byte{key: data}}
	h.create(t, s)
	return s
}

// The formats of both reference plugins are read, and no program is run for them.
func TestProfiles(t *testing.T) {
	h := start(t, quick(profiles.New(profiles.Options{})))
	tokens := h.tokens(t)

	byToken := h.profile(t, "token", "secretreader", `{"clusterName":"token-of-it"}`)
	wait.Until(t, patience, "the Secret is named", func() error { // the status comes after the profile
		if s := h.State(h.profileName("token")); s.Reason != fleet.ReasonKubeconfigUnreadable || !strings.Contains(s.Message, "token-of-it") {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	s := h.secret(t, "token-of-it", "token", []byte(tokens()))
	conn := h.connected(t, h.profileName("token"))
	works(t, conn)
	if m, _ := h.Describe(h.profileName("token")); m.Properties["region"] != "north" || m.Labels[inventoryv1alpha1.LabelClusterManagerKey] != "test" {
		t.Errorf("%+v", m)
	}
	first := h.whoAmI(t, conn)
	h.patch(t, s, fmt.Sprintf(`{"data":{"token":%q}}`, base64Of([]byte(tokens()))))
	h.awaitOtherToken(t, conn, first)
	h.delete(t, byToken)
	h.gone(t, h.profileName("token"), conn)

	h.secret(t, "config-of-it", "config", h.workload.Kubeconfig())
	byKubeconfig := h.profile(t, "kubeconfig", "kubeconfig-secretreader", `{"name":"config-of-it","key":"config","context":""}`)
	conn = h.connected(t, h.profileName("kubeconfig"))
	works(t, conn)
	h.delete(t, byKubeconfig)
	h.gone(t, h.profileName("kubeconfig"), conn)
}

// What a profile may not ask for is refused by name, and starts no program.
func TestHostileProfiles(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	h := start(t, quick(profiles.New(profiles.Options{})))
	other := newHub(t)
	other.secret(t, "credentials", "token", []byte("t"))
	h.secret(t, "credentials", "token", []byte("t"))
	execKubeconfig := fleettest.Kubeconfig(h.workload.Config().Host, nil, &clientcmdapi.AuthInfo{
		Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{ran}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	})
	h.secret(t, "program", "config", execKubeconfig)
	h.secret(t, "file", "config", fleettest.Kubeconfig(h.workload.Config().Host, nil, &clientcmdapi.AuthInfo{TokenFile: "/etc/hostname"}))
	const byToken, byKubeconfig = "secretreader", "kubeconfig-secretreader"
	for name, tc := range map[string]struct {
		provider, config string
		change           func(*clientcmdv1.Cluster)
		phase            fleet.Phase
		reason, says     string
	}{
		"proxy":    {byToken, `{"clusterName":"credentials"}`, func(c *clientcmdv1.Cluster) { c.ProxyURL = "http://proxy" }, fleet.PhaseRefused, fleet.ReasonKubeconfigRefused, "proxy-url"},
		"insecure": {byToken, `{"clusterName":"credentials"}`, func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true }, fleet.PhaseRefused, fleet.ReasonKubeconfigRefused, "insecure"},
		"ca-file": {byToken, `{"clusterName":"credentials"}`, func(c *clientcmdv1.Cluster) {
			c.CertificateAuthorityData, c.CertificateAuthority = nil, "/etc/hostname"
		}, fleet.PhaseRefused, fleet.ReasonKubeconfigRefused, "file"},
		"arguments": {"unknown", `{}`, func(c *clientcmdv1.Cluster) {
			c.Extensions[0].Name = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
		}, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "no access provider that is known"},
		"theirs":   {byKubeconfig, `{"name":"credentials","key":"token","namespace":"` + other.namespace + `"}`, nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "own namespace"},
		"program":  {byKubeconfig, `{"name":"program","key":"config"}`, nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "exec"},
		"file":     {byKubeconfig, `{"name":"file","key":"config"}`, nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "tokenFile"},
		"nameless": {byToken, `{}`, nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "clusterName"},
		"formless": {byToken, `{"clusterName":["x"]}`, nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "form"},
		"bare":     {byToken, "", nil, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable, "no extension"},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*clientcmdv1.Cluster)
			if tc.change != nil {
				changes = append(changes, tc.change)
			}
			h.profile(t, name, tc.provider, tc.config, changes...)
			h.expect(t, h.profileName(name), tc.phase, tc.reason)
			wait.Until(t, patience, "the message", func() error {
				if message := h.State(h.profileName(name)).Message; !strings.Contains(message, tc.says) || !strings.Contains(message, name) {
					return fmt.Errorf("%s", message)
				}
				return nil
			})
		})
	}
	expectNoFile(t, ran)
}

// Plugins are an administrator's: they get the cluster, and nothing of the profile or of this process'
// environment beside it. What they return is renewed before it ends.
func TestProfilePlugin(t *testing.T) {
	long.InCI(t)
	h := newHub(t)
	tokens := h.tokens(t)
	dir := t.TempDir()
	token, seen := filepath.Join(dir, "token"), filepath.Join(dir, "seen")
	write(t, token, []byte(tokens()))
	t.Setenv("SENTINEL", "of the manager")
	program := filepath.Join(dir, "plugin")
	script := `#!/bin/sh
/usr/bin/env >>` + seen + `
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$(/bin/cat ` + token + `)'","expirationTimestamp":"'$(/bin/date -u -d '+15 seconds' +%Y-%m-%dT%H:%M:%SZ)'"}}'
`
	must.Succeed(t, os.WriteFile(program, []byte(script), 0o700))
	h.run(t, quick(profiles.New(profiles.Options{Plugins: map[string]profiles.Plugin{
		"cloud": {Command: program, Env: []string{"REGION=north"}},
		"fails": {Command: filepath.Join(dir, "missing")},
	}})))
	h.profile(t, "one", "cloud", `{"cluster":"one"}`, func(c *clientcmdv1.Cluster) {
		c.Extensions = append(c.Extensions, clientcmdv1.NamedExtension{
			Name: "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", Extension: runtime.RawExtension{Raw: []byte(`{"INJECTED":"yes"}`)},
		})
	})
	conn := h.connected(t, h.profileName("one"))
	works(t, conn)
	environment, err := os.ReadFile(seen)
	must.Succeed(t, err)
	for line, there := range map[string]bool{"REGION=north": true, `"config":{"cluster":"one"}`: true, "SENTINEL": false, "INJECTED=": false, "KUBECONFIG": false} {
		if strings.Contains(string(environment), line) != there {
			t.Errorf("%s in the environment: %t\n%s", line, !there, environment)
		}
	}

	first := h.whoAmI(t, conn)
	write(t, token, []byte(tokens()))
	h.awaitOtherToken(t, conn, first)

	h.profile(t, "two", "fails", "")
	message := h.expect(t, h.profileName("two"), fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable)
	if !strings.Contains(message, "fails") {
		t.Error(message)
	}
}
