// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	s := &servingWebhooks{webhooks: freeAddress(t), hooks: freeAddress(t)}
	certificate, dir := mustCertificate(t), t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": certificate.chain, "tls.key": certificate.key} {
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	server, err := world.hub.AddUser(tn.user + ":webhooks")
	must(t, err)
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
	must(t, err)
	return port
}
