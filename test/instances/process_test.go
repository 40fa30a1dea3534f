// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/cluster-chandler/chandler/test/manager"
)

// process is a replica: the program under test, in a pod's shoes.
type process struct {
	*pod
	*manager.Process
	health string // address
	serves string // address of the webhooks, "" if it has none
}

// start runs the pod's container.
func (p *pod) start(version string, flags ...string) *process {
	m := p.process(version, flags...)
	m.Launch()
	return m
}

// process returns the pod's container, ready to run. It has the built arguments, and
// then those that a process on this host needs, where ports are shared and no kubelet
// says where it runs. It outlives the subtest that starts it.
func (p *pod) process(version string, flags ...string) *process {
	p.w.t.Helper()
	logs := os.Getenv("CHANDLER_E2E_LOGS")
	if logs != "" {
		logs = filepath.Join(logs, p.w.root.Name())
	}
	health := manager.FreeAddress(p.w.t)
	args := append(p.args(), "--health-addr="+health, "--diagnostics-address=0", "--allow-loopback")
	return &process{pod: p, health: health, Process: manager.New(p.w.root, manager.Options{
		Name: p.name, Binary: binary(version), Kubeconfig: p.kubeconfig(), Args: append(args, flags...), Home: p.dir, LogDir: logs,
	})}
}

// stop ends the process as a kubelet would.
func (m *process) stop() {
	m.w.root.Helper()
	m.Stop(m.w.root)
}

// ready asks /readyz, as the kubelet does.
func (m *process) ready() error {
	if err := m.Running(); err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: 2 * time.Second}).Get("http://" + m.health + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: /readyz says %s: %s", m.name, response.Status, bytes.TrimSpace(body))
	}
	return nil
}
