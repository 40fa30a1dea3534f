// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
	_ "time/tzdata" // a worker cannot open files, and dates in named zones must not depend on the host

	"github.com/cluster-chandler/chandler/internal/artifact"
	sourcefailure "github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/lru"
)

// maxStackBytes ends endless recursion before it eats the memory limit.
const maxStackBytes = 64 << 20

// stage is what a worker is doing; it completes "stopped while ...".
type stage string

const (
	stageStart     stage = "reading the request"
	stageOpen      stage = "reading the archive"
	stageLoad      stage = "loading the chart"
	stageRead      stage = "reading the values"
	stageValues    stage = "coalescing the values"
	stageSchema    stage = "checking the values against the schema"
	stageTemplates stage = "executing the templates"
	stageManifests stage = "reading the manifests"

	stageKustomization stage = "building the kustomization"
	stagePatches       stage = "applying the patches"
)

// reason is that of a crash in this stage.
func (s stage) reason() string {
	switch s {
	case stageRead:
		return ReasonValuesInvalid
	case stageTemplates:
		return ReasonTemplateFailed
	case stageManifests:
		return ReasonManifestInvalid
	case stageKustomization:
		return ReasonKustomizationInvalid
	case stagePatches:
		return ReasonPatchFailed
	}
	return ReasonChartInvalid
}

// RunWorkerIfAsked turns this process into a render worker if it was started as one, and then
// does not return. Call it first thing in main, and in TestMain.
func RunWorkerIfAsked() {
	value, asked := os.LookupEnv(workerEnv)
	if !asked {
		return
	}
	memoryBytes, err := strconv.ParseInt(value, 10, 64)
	if err != nil || memoryBytes <= 0 {
		os.Exit(1)
	}
	os.Exit(runWorker(memoryBytes))
}

func runWorker(memoryBytes int64) int {
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr // nothing but frames goes to the parent
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm logs names and values of charts
	http.DefaultTransport = noNetwork{}            // the sandbox refuses it, too, but only after a lookup of the name timed out
	time.Local = time.UTC
	runtime.GOMAXPROCS(2) // one for the templates, one for the garbage collector
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStackBytes)
	debug.SetMemoryLimit(memoryBytes / 10 * 9)
	if err := enterSandbox(memoryBytes); err != nil {
		return 1
	}
	w := &worker{out: bufio.NewWriterSize(out, 64<<10), files: newFileSets(memoryBytes)}
	if err := w.send(frameReady, nil); err != nil {
		return 1
	}
	requests := make(chan []byte)
	go readRequests(in, requests)
	for payload := range requests {
		stop := guardMemory(memoryBytes)
		resp := w.answer(payload)
		stop()
		resp.MemoryBytes = memoryInUse()
		if err := w.sendResponse(resp); err != nil {
			return 1
		}
	}
	return 0
}

// noNetwork refuses requests at once.
type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a render worker has no network")
}

// readRequests ends the process when its parent is gone, also in the middle of a rendering.
func readRequests(in io.Reader, requests chan<- []byte) {
	for {
		kind, payload, err := readFrame(in, math.MaxUint32)
		if err != nil || kind != frameRequest {
			os.Exit(0)
		}
		requests <- payload
	}
}

type worker struct {
	out       *bufio.Writer
	stage     stage
	frameSize int64
	files     *lru.Cache[fileSet, []artifact.File]
}

func (w *worker) send(kind byte, payload []byte) error {
	if err := writeFrame(w.out, kind, payload); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *worker) sendResponse(resp *response) error {
	payload, err := encoding.Marshal(resp)
	if err != nil || int64(len(payload)) > w.frameSize {
		short := &response{MemoryBytes: resp.MemoryBytes, Failure: &failure{
			Reason: ReasonOutputTooLarge, Message: "the rendered output is larger than allowed"}}
		if payload, err = encoding.Marshal(short); err != nil {
			return err
		}
	}
	return w.send(frameResponse, payload)
}

func (w *worker) enter(s stage) {
	w.stage = s
	_ = w.send(frameStage, []byte(s)) // only for messages; the answer's own send reports a lost parent
}

// answer handles one request; it does not panic.
func (w *worker) answer(payload []byte) (resp *response) {
	w.stage = stageStart
	defer func() {
		if recover() != nil { // the panic's value may hold secrets
			resp = &response{Retire: true, Failure: &failure{
				Reason: w.stage.reason(), Message: "the render worker panicked while " + string(w.stage)}}
		}
	}()
	req := &request{}
	if err := decoding.Unmarshal(payload, req); err != nil {
		return &response{Failure: w.failure(errors.New("the request cannot be decoded"), nil)}
	}
	w.frameSize = req.Limits.frameBytes()
	if !w.fill(req) {
		return &response{WithoutFiles: true}
	}
	resp = &response{}
	var err error
	var sensitive []string
	switch {
	case req.Chart != nil:
		resp.Result, resp.Asked, err = renderChart(req.Chart, req.Limits, w.enter)
		sensitive = req.Chart.Sensitive
	case req.Kustomization != nil:
		resp.Result, err = renderKustomization(req.Kustomization, req.Limits, w.enter)
	case req.Manifests != nil:
		resp.Result, err = renderManifests(req.Manifests, req.Limits, w.enter)
	case req.Open != nil:
		w.enter(stageOpen)
		resp.Opened, err = opener.Run(req.Open)
	case req.Values != nil:
		w.enter(stageRead)
		if resp.Values, err = readValues(req.Values); err != nil {
			err = fmt.Errorf("values: %w", err)
		}
	case req.Template != nil:
		w.enter(stageTemplates)
		resp.Template, err = renderTemplate(req.Template, req.Limits)
	default:
		err = errProtocol
	}
	if err != nil {
		resp.Failure = w.failure(err, sensitive)
	}
	return resp
}

// fill gives a request its files: those that came with it, or from one before. It reports
// whether they are there.
func (w *worker) fill(req *request) bool {
	files := req.files()
	if files == nil {
		return true
	}
	if req.NewFiles != nil {
		*files = req.NewFiles
		w.files.Put(req.FileSet, req.NewFiles)
		return true
	}
	known, found := w.files.Get(req.FileSet)
	*files = known
	return found
}

// failure is what a user is told of an error. What has no reason has that of the stage.
func (w *worker) failure(err error, sensitive []string) *failure {
	known := &Error{Reason: w.stage.reason(), Err: err}
	if opening, ok := errors.AsType[*sourcefailure.Error](err); ok {
		known = &Error{Reason: opening.Reason, Err: opening.Err}
	} else {
		errors.As(err, &known)
	}
	return &failure{Reason: known.Reason, Message: safeText(known.Err.Error(), sensitive)}
}

// guardMemory ends the process soon after it passes its limit. What is faster than this
// watch, one huge allocation, meets the kernel's limit (enterSandbox).
func guardMemory(limit int64) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if memoryInUse() > limit {
					os.Exit(exitOutOfMemory)
				}
			}
		}
	}()
	return func() { close(done) }
}

// memoryInUse is what Go's runtime holds, without what it has given back, in bytes.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
