// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/wait"
)

// stopTimeout is how long a process may take to end by itself.
const stopTimeout = 30 * time.Second

// logTailSize is how much of a log a failed test shows.
const logTailSize = 6 << 10

// process is a running replica: the program under test, in a pod's shoes.
type process struct {
	*pod
	t      *testing.T
	log    string
	health string // address
	serves string // address of the webhooks, "" if it has none
	cmd    *exec.Cmd
	ended  atomic.Bool   // on purpose
	done   chan struct{} // closed at the exit
}

// start runs the pod's container.
func (p *pod) start(version string, flags ...string) *process {
	m := p.process(version, flags...)
	m.launch()
	return m
}

// process is the pod's container, ready to run: with the built arguments, and then those
// that a process on this host needs, where ports are shared and no kubelet says where
// it runs.
func (p *pod) process(version string, flags ...string) *process {
	t := p.w.root // the process outlives the subtest that starts it
	p.w.t.Helper()
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, p.kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	logDir := p.dir
	if keep := os.Getenv("CHANDLER_E2E_LOGS"); keep != "" {
		logDir = filepath.Join(keep, t.Name())
		if err := os.MkdirAll(logDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &process{pod: p, t: t, log: filepath.Join(logDir, p.name+".log"), health: freeAddress(t), done: make(chan struct{})}
	args := append(p.args(), "--health-addr="+m.health, "--diagnostics-address=0", "--allow-loopback")
	m.cmd = exec.Command(binary(version), append(args, flags...)...)
	m.cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + os.Getenv("PATH")}
	m.cmd.Dir = p.dir
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return m
}

func (m *process) launch() {
	m.w.t.Helper()
	log, err := os.Create(m.log)
	if err != nil {
		m.w.t.Fatal(err)
	}
	defer log.Close()
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := controlplane.Spawn(m.cmd); err != nil {
		m.w.t.Fatalf("starting %s: %v", m.name, err)
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is looked up in cmd.ProcessState
		close(m.done)
	}()
	m.t.Cleanup(m.cleanUp)
}

// kill ends the process as a power failure would.
func (m *process) kill() {
	m.ended.Store(true)
	_ = m.cmd.Process.Kill() // fails only if it has ended already
	<-m.done
}

// stop ends the process as a kubelet would.
func (m *process) stop() {
	m.t.Helper()
	m.ended.Store(true)
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.done:
	case <-time.After(stopTimeout):
		m.t.Errorf("%s didn't end within %s of SIGTERM: a rollout would hang", m.name, stopTimeout)
		m.kill()
	}
}

// errEnded is for ever.
var errEnded = fmt.Errorf("it has ended %w", wait.ErrFinal)

// running fails if the process has ended.
func (m *process) running() error {
	select {
	case <-m.done:
		return fmt.Errorf("%s: %w: %s\n%s", m.name, errEnded, m.cmd.ProcessState, m.tail())
	default:
		return nil
	}
}

// ready asks /readyz, as the kubelet does.
func (m *process) ready() error {
	if err := m.running(); err != nil {
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

var crashed = regexp.MustCompile(`(?m)^(panic:|fatal error:|WARNING: DATA RACE)|Observed a panic`)

// cleanUp ends what is left of the process, and fails the test if it went wrong in a
// way that no test expects.
func (m *process) cleanUp() {
	select {
	case <-m.done:
		if !m.ended.Load() {
			m.t.Errorf("%s ended by itself: %s\n%s", m.name, m.cmd.ProcessState, m.tail())
		}
	default:
		m.kill()
	}
	_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // what renders charts, if it left any
	data, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Error(err)
		return
	}
	if at := crashed.FindIndex(data); at != nil {
		m.t.Errorf("%s panicked:\n%s", m.name, data[at[0]:min(len(data), at[0]+logTailSize)])
	}
	if m.t.Failed() {
		m.t.Logf("the end of the log of %s:\n%s", m.name, m.tail())
	}
}

// tail is the end of the log.
func (m *process) tail() []byte {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return []byte(err.Error())
	}
	if len(data) > logTailSize {
		data = data[len(data)-logTailSize:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return data
}

// says fails unless the log has the text.
func (m *process) says(text string) error {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(text)) {
		return errors.New(m.name + "'s log doesn't say: " + text)
	}
	return nil
}

// freeAddress returns an address on loopback that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate is the serial number of the one that the process serves webhooks with.
func (m *process) certificate() (string, error) {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(m.t.Context(), "tcp", m.serves)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}
