// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"errors"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
	_ "time/tzdata" // a worker cannot open files, and dates in named zones must not depend on the host

	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
)

// maxStackBytes ends endless recursion before it eats the memory limit.
const maxStackBytes = 64 << 20

// RunIfAsked turns this process into a render worker if it was started as one, and then
// does not return. Call it first thing in main, and in TestMain.
func RunIfAsked() {
	value, asked := os.LookupEnv(protocol.WorkerEnv)
	if !asked {
		return
	}
	memoryBytes, err := strconv.ParseInt(value, 10, 64)
	if err != nil || memoryBytes <= 0 {
		os.Exit(1)
	}
	os.Exit(run(memoryBytes))
}

func run(memoryBytes int64) int {
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
	if err := sandbox.Enter(memoryBytes); err != nil {
		return 1
	}
	w := &worker{out: bufio.NewWriterSize(out, 64<<10)}
	if err := w.send(protocol.FrameReady, nil); err != nil {
		return 1
	}
	requests := make(chan received)
	go readRequests(in, requests)
	for request := range requests {
		stop := guardMemory(memoryBytes)
		resp := w.answer(request)
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

// received is a request in CBOR, with the contents of its files.
type received struct {
	payload []byte
	files   [][]byte
}

// readRequests ends the process when its parent is gone, also in the middle of a rendering.
func readRequests(in io.Reader, requests chan<- received) {
	var next received
	for {
		kind, data, err := protocol.ReadFrame(in, math.MaxUint32)
		switch {
		case err == nil && kind == protocol.FrameFile:
			next.files = append(next.files, data)
		case err == nil && kind == protocol.FrameRequest:
			next.payload = data
			requests <- next
			next = received{}
		default:
			os.Exit(0)
		}
	}
}
