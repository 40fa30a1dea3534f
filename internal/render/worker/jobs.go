// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/files"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/render/values"
)

type worker struct {
	out       *bufio.Writer
	stage     job.Stage
	frameSize int64
}

func (w *worker) send(kind byte, payload []byte) error {
	if err := protocol.WriteFrame(w.out, kind, payload); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *worker) sendResponse(resp *protocol.Response) error {
	payload, err := protocol.Encoding.Marshal(resp)
	if err != nil || int64(len(payload)) > w.frameSize {
		short := &protocol.Response{MemoryBytes: resp.MemoryBytes, Failure: &protocol.Failure{
			Reason: job.ReasonOutputTooLarge, Message: "the rendered output is larger than allowed"}}
		if payload, err = protocol.Encoding.Marshal(short); err != nil {
			return err
		}
	}
	return w.send(protocol.FrameResponse, payload)
}

func (w *worker) enter(s job.Stage) {
	w.stage = s
	_ = w.send(protocol.FrameStage, []byte(s)) // only for messages; the answer's own send reports a lost parent
}

// answer handles one request; it does not panic.
func (w *worker) answer(r received) (resp *protocol.Response) {
	w.stage = job.StageStart
	defer func() {
		if recover() != nil { // the panic's value may hold secrets
			resp = &protocol.Response{Retire: true, Failure: &protocol.Failure{
				Reason: w.stage.Reason(), Message: "the render worker panicked while " + string(w.stage)}}
		}
	}()
	req := &protocol.Request{}
	if err := protocol.Decoding.Unmarshal(r.payload, req); err != nil || !req.Attach(r.files) {
		return &protocol.Response{Failure: w.failure(errors.New("the request cannot be decoded"), nil)}
	}
	w.frameSize = req.Limits.FrameBytes()
	resp = &protocol.Response{}
	var err error
	var sensitive []string
	switch {
	case req.Chart != nil:
		resp.Result, resp.Asked, err = chart.Render(req.Chart, req.Limits, w.enter)
		sensitive = req.Chart.Sensitive
	case req.Objects != nil:
		resp.Result, err = files.Objects(req.Objects, req.Limits, w.enter)
	case req.Open != nil:
		w.enter(job.StageOpen)
		resp.Opened, err = opener.Run(req.Open)
	case req.Values != nil:
		w.enter(job.StageRead)
		if resp.Values, err = values.Read(req.Values); err != nil {
			err = fmt.Errorf("values: %w", err)
		}
	case req.Template != nil:
		w.enter(job.StageTemplates)
		resp.Template, err = values.RenderTemplate(req.Template, req.Limits)
	case req.Names != nil:
		w.enter(job.StageTemplates)
		resp.Names, err = values.RenderNames(req.Names, req.Limits)
	default:
		err = protocol.ErrUnexpected
	}
	if err != nil {
		resp.Failure = w.failure(err, sensitive)
	}
	return resp
}
