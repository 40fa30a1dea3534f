// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
)

var errTimeout = errors.New("render timeout")

// process is a worker as its parent sees it. A single goroutine at a time uses it.
type process struct {
	cmd       *exec.Cmd
	stdin     io.WriteCloser
	stdout    *os.File
	reader    *bufio.Reader
	stderr    *stderrHead
	exited    chan struct{} // closed once the child is reaped
	served    int
	stage     job.Stage
	idleTimer *time.Timer
}

// startProcess runs this executable again as a worker, with nothing but the mark in its environment.
func startProcess(memoryBytes int64) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Not by StdoutPipe: Wait would close it, with the last answer in it.
	stdout, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childOut.Close()

	stderr := &stderrHead{}
	cmd := exec.Command(exe) //nolint:noctx // a worker outlives the request that starts it
	cmd.Env = []string{protocol.WorkerEnv + "=" + strconv.FormatInt(memoryBytes, 10)}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = childOut, stderr
	cmd.SysProcAttr = sandbox.ChildAttributes()
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stdout.Close()
		return nil, err
	}
	p := &process{
		cmd: cmd, stdin: stdin, stdout: stdout, reader: bufio.NewReaderSize(stdout, 64<<10),
		stderr: stderr, exited: make(chan struct{}), stage: job.StageStart,
	}
	go func() {
		_ = cmd.Wait() // its result is in cmd.ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) awaitReady(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.kill)()
	kind, _, err := protocol.ReadFrame(p.reader, 0)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("no sign of life (does main call worker.RunIfAsked first?): %w", err)
	case kind != protocol.FrameReady:
		return protocol.ErrUnexpected
	}
	return nil
}

// exchange sends one request and reads its answer. On any error the process is of no more use.
func (p *process) exchange(ctx context.Context, t *task, limit int64) (*protocol.Response, error) {
	stop := context.AfterFunc(ctx, p.kill)
	resp, err := p.ask(t, limit)
	if !stop() && err == nil {
		return nil, context.Cause(ctx) // killed in the moment of its answer
	}
	return resp, err
}

func (p *process) ask(t *task, limit int64) (*protocol.Response, error) {
	p.stage = job.StageStart
	if err := p.send(t); err != nil {
		return nil, err
	}
	for {
		kind, data, err := protocol.ReadFrame(p.reader, limit)
		if err != nil {
			return nil, err
		}
		switch kind {
		case protocol.FrameStage:
			p.stage = job.Stage(data)
		case protocol.FrameResponse:
			resp := &protocol.Response{Payload: data}
			if err := protocol.Decoding.Unmarshal(data, resp); err != nil {
				return nil, fmt.Errorf("%w: %w", protocol.ErrUnexpected, err)
			}
			return resp, nil
		default:
			return nil, protocol.ErrUnexpected
		}
	}
}

// send writes the contents of a task as they are in memory, and then the request.
func (p *process) send(t *task) error {
	out := bufio.NewWriter(p.stdin)
	for _, content := range t.contents {
		if err := protocol.WriteFrame(out, protocol.FrameFile, content); err != nil {
			return err
		}
	}
	payload, err := protocol.Encode(t.req)
	if err != nil {
		return err
	}
	if err := protocol.WriteFrame(out, protocol.FrameRequest, payload); err != nil {
		return err
	}
	return out.Flush()
}

// slowest is how many times as long as on a processor of its own a task may take on a busy machine.
const slowest = 10

// limit ends a task once the process has run for so long on processors, and so long by the clock.
func (p *process) limit(ctx context.Context, limit time.Duration, end context.CancelCauseFunc) {
	began, known := sandbox.ProcessorTime(p.cmd.Process.Pid)
	for left, clock := limit, time.Now(); left > 0; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
		used := limit
		if known && time.Since(clock) < slowest*limit {
			used, _ = sandbox.ProcessorTime(p.cmd.Process.Pid)
			used -= began
		}
		left = limit - used
	}
	end(errTimeout)
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
// the user, so it is only searched for messages of Go's runtime, and never shown.
func (p *process) postMortem() *failure.Error {
	text := p.stderr.buf.String()
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case says("stack overflow", "goroutine stack exceeds"):
		return failure.New(p.stage.Reason(), "endless or too deep recursion while %s; correct what calls itself", p.stage)
	case state.ExitCode() == protocol.ExitOutOfMemory,
		says("out of memory", "cannot allocate memory", "failed to reserve", "failed to create new OS thread", "pthread_create failed"):
		return failure.New(job.ReasonOutOfMemory, "needed more memory than allowed while %s; make it simpler, or raise --render-memory-mib", p.stage)
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return failure.New(job.ReasonOutOfMemory, "was killed while %s, most likely for its use of memory; make it simpler, or give the provider more", p.stage)
	}
	return failure.New(p.stage.Reason(), "the render worker crashed while %s", p.stage)
}

// stderrHead keeps the first bytes written to it, where Go's runtime says why it ends. It is read once the process is
// reaped: nobody writes to it any more.
type stderrHead struct{ buf bytes.Buffer }

// Write implements io.Writer.
func (t *stderrHead) Write(data []byte) (int, error) {
	room := max(0, 8<<10-t.buf.Len())
	t.buf.Write(data[:min(room, len(data))])
	return len(data), nil
}
