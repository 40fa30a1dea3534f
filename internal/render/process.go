// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// workerEnv marks a process as a render worker; its value is the memory limit in bytes.
const workerEnv = "CHANDLER_RENDER_WORKER"

// exitOutOfMemory is the exit code of a worker that saw its own memory limit passed.
const exitOutOfMemory = 77

var errTimeout = errors.New("render timeout")

// process is a worker as its parent sees it. One goroutine at a time uses it.
type process struct {
	cmd       *exec.Cmd
	stdin     *os.File
	stdout    *os.File
	reader    *bufio.Reader
	stderr    *stderrHead
	exited    chan struct{} // closed once the child is reaped
	served    int
	sent      map[fileSet]bool // what the worker may have
	stage     stage
	idleTimer *time.Timer
}

// startProcess runs this executable again as a worker, with nothing but the mark in its environment.
func startProcess(memoryBytes int64) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	stdout, childOut, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer childOut.Close()

	stderr := &stderrHead{}
	cmd := exec.Command(exe) //nolint:noctx // a worker outlives the request that starts it
	cmd.Env = []string{workerEnv + "=" + strconv.FormatInt(memoryBytes, 10)}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, stderr
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	p := &process{
		cmd: cmd, stdin: stdin, stdout: stdout, reader: bufio.NewReaderSize(stdout, 64<<10),
		stderr: stderr, exited: make(chan struct{}), stage: stageStart,
		sent: map[fileSet]bool{},
	}
	go func() {
		_ = cmd.Wait() // its result is in cmd.ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) awaitReady(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.kill)()
	kind, _, err := readFrame(p.reader, 0)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("no sign of life (does main call render.RunWorkerIfAsked first?): %w", err)
	case kind != frameReady:
		return errProtocol
	}
	return nil
}

// exchange sends one request and reads its answer. On any error the process is of no more use.
func (p *process) exchange(ctx context.Context, t *task, limit int64) (*response, error) {
	stop := context.AfterFunc(ctx, p.kill)
	resp, err := p.converse(t, limit)
	if !stop() && err == nil {
		return nil, context.Cause(ctx) // killed in the moment of its answer
	}
	return resp, err
}

// converse sends the files of a request only if the worker doesn't have them.
func (p *process) converse(t *task, limit int64) (*response, error) {
	if t.files == nil || p.sent[t.req.FileSet] {
		resp, err := p.ask(t.payload, limit)
		if err != nil || !resp.WithoutFiles {
			return resp, err
		}
	}
	payload, err := t.withFiles()
	if err != nil {
		return nil, err
	}
	p.sent[t.req.FileSet] = true
	resp, err := p.ask(payload, limit)
	if err == nil && resp.WithoutFiles {
		return nil, errProtocol
	}
	return resp, err
}

func (p *process) ask(payload []byte, limit int64) (*response, error) {
	p.stage = stageStart
	if err := writeFrame(p.stdin, frameRequest, payload); err != nil {
		return nil, err
	}
	for {
		kind, data, err := readFrame(p.reader, limit)
		if err != nil {
			return nil, err
		}
		switch kind {
		case frameStage:
			p.stage = stage(data)
		case frameResponse:
			resp := &response{payload: data}
			if err := decoding.Unmarshal(data, resp); err != nil {
				return nil, fmt.Errorf("%w: %w", errProtocol, err)
			}
			return resp, nil
		default:
			return nil, errProtocol
		}
	}
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill is safe at any time, also twice.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end kills the process, waits for its end and frees its pipes.
func (p *process) end() {
	p.kill()
	<-p.exited
	p.stdin.Close()
	p.stdout.Close()
}

// postMortem says why a worker died in the middle of a request. Its stderr may hold values of
// the user, so it is only searched for what Go's runtime writes, and never shown.
func (p *process) postMortem() *Error {
	text := p.stderr.String()
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case says("stack overflow", "goroutine stack exceeds"):
		return failf(p.stage.reason(), "endless or too deep recursion while %s; correct what calls itself", p.stage)
	case state.ExitCode() == exitOutOfMemory,
		says("out of memory", "cannot allocate memory", "failed to reserve", "failed to create new OS thread", "pthread_create failed"):
		return failf(ReasonOutOfMemory, "needed more memory than allowed while %s; make it simpler, or raise --render-memory-mib", p.stage)
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return failf(ReasonOutOfMemory, "was killed while %s, most likely for its use of memory; make it simpler, or give the provider more", p.stage)
	}
	return failf(p.stage.reason(), "the render worker crashed while %s", p.stage)
}

// stderrHead keeps the first bytes written to it, where Go's runtime says why it ends.
type stderrHead struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *stderrHead) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 8<<10 - t.buf.Len(); room > 0 {
		t.buf.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}

func (t *stderrHead) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
