// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cluster-chandler/chandler/test/process"
)

// issuer of ServiceAccount tokens.
const issuer = "https://kubernetes.default.svc.cluster.local"

// auditPolicy records each request once, when it has been answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// StartAPIServer starts the API server after StopAPIServer, at the same address and with the same data, and returns
// when it serves.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	args, err := c.apiServerArgs()
	if err != nil {
		return err
	}
	if err := c.runAPIServer(args); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.wait(ctx, "waiting for kube-apiserver", func(ctx context.Context) error { return ready(ctx, client) })
}

// ChangeVersion replaces the API server by one of another version, at the same address and with the same data, and
// returns when it serves.
func (c *ControlPlane) ChangeVersion(ctx context.Context, version string) error {
	c.mu.Lock()
	o := c.options
	c.mu.Unlock()
	o.Version = version
	binDir, err := BinDir(ctx, o.Out, o.binaries()...)
	if err != nil {
		return err
	}
	_ = c.StopAPIServer() // fails only if it is stopped already
	c.mu.Lock()
	c.options.Version, c.binDir = version, binDir
	c.mu.Unlock()
	return c.StartAPIServer(ctx)
}

func (c *ControlPlane) runAPIServer(args []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiserver != nil {
		return errors.New("kube-apiserver is running") // a second one would get half of the connections
	}
	var err error
	c.apiserver, err = c.runLocked(c.options.apiServer(), args...)
	return err
}

func ready(ctx context.Context, client kubernetes.Interface) error {
	if err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	// The API server makes this namespace a moment after it is ready.
	_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	return err
}

// StopAPIServer kills the API server: connections break and new ones are refused, as in a crash.
func (c *ControlPlane) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiserver == nil {
		return errors.New("kube-apiserver is not running")
	}
	c.apiserver.Kill()
	c.apiserver = nil
	return nil
}

// PauseAPIServer makes the API server hang: it accepts connections but answers nothing, as behind a broken network.
func (c *ControlPlane) PauseAPIServer() error { return c.withAPIServer((*process.Process).Pause) }

// ResumeAPIServer ends a pause.
func (c *ControlPlane) ResumeAPIServer() error { return c.withAPIServer((*process.Process).Resume) }

func (c *ControlPlane) withAPIServer(act func(*process.Process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiserver == nil {
		return errors.New("kube-apiserver is not running")
	}
	return act(c.apiserver)
}

func (c *ControlPlane) apiServerArgs() ([]string, error) {
	args := []string{
		"--etcd-servers=" + c.etcdURL(),
		"--etcd-count-metric-poll-period=0", // nobody reads these metrics
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port.number),
		"--permit-port-sharing=true", // with the socket that holds the port
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.path(serverCert),
		"--tls-private-key-file=" + c.path(serverKey),
		"--client-ca-file=" + c.path(caCert),
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.path(serviceAccountKey),
		"--service-account-signing-key-file=" + c.path(serviceAccountKey),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}
	if !c.options.Workers {
		// Nothing creates the ServiceAccounts that this plugin asks of a pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.AuditLog != "" {
		policy := c.path("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(c.options.AuditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("writing the audit policy: %w", err)
		}
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+c.options.AuditLog, "--audit-log-maxsize=100000")
	}
	return append(args, c.options.ExtraAPIServerArgs...), nil
}
