// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"slices"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

const (
	// sharedBytes bounds the answers that are kept, as workers send them. A cluster's values take a few hundred bytes; larger ones stay
	// for as long, also after edits.
	sharedBytes = 8 << 20
	// sharedOverhead is about the memory of one answer beside its text, in bytes.
	sharedOverhead = 256
	// sharedVariants is how many answers to one request are kept, of clusters with other facts.
	sharedVariants = 4
)

// sharedAnswers keeps answers for clusters whose inputs are the same: each of them gets objects of its
// own. Never shared are answers with values that a chart generated, and answers that depend on Secrets or on the
// cluster's objects. Values that were read are found by their whole text alone, and texts of templates by all their data.
// So a reconcile of an unchanged cluster needs no worker.
//
// Key: the digest of the inputs.
// Bound: sharedBytes, and sharedVariants for each.
// Lost with it: charts are rendered once more.
type sharedAnswers struct {
	answers *budget.Cache[[sha256.Size]byte, []sharedAnswer]
}

// sharedAnswer is a response in CBOR, and the facts on which it depends.
type sharedAnswer struct {
	payload []byte
	used    job.FactsUsed
}

func newSharedAnswers(memory *budget.Budget) *sharedAnswers {
	return &sharedAnswers{answers: budget.NewCache[[sha256.Size]byte](memory, sharedBytes, func(answers []sharedAnswer) (bytes int64) {
		for _, a := range answers {
			bytes += int64(len(a.payload)) + sharedOverhead
		}
		return bytes
	})}
}

// shares reports whether the answer to a task may be that to another one, too.
func (t *task) shares() bool {
	c := t.req.Chart
	return t.req.Open == nil && (c == nil || len(c.Generated)+len(c.Sensitive)+len(c.Answers)+len(c.LiveObjects) == 0)
}

// find returns the answer that others got; nil if there is none.
func (s *sharedAnswers) find(t *task) *protocol.Response {
	if !t.shares() {
		return nil
	}
	answers, _ := s.answers.Get(t.inputs)
	for _, a := range answers {
		resp := &protocol.Response{}
		if (t.req.Chart == nil || a.used.Holds(t.req.Chart.Facts)) && protocol.Decoding.Unmarshal(a.payload, resp) == nil {
			if resp.Result != nil {
				renderingsTotal.WithLabelValues(resultShared).Inc()
			}
			return resp
		}
	}
	return nil
}

// keep keeps an answer for others, if it may be theirs.
func (s *sharedAnswers) keep(tenant budget.Tenant, t *task, resp *protocol.Response) {
	if !t.shares() || len(resp.Asked) > 0 {
		return
	}
	answer := sharedAnswer{payload: resp.Payload}
	if made := resp.Result; made != nil {
		if made.Made || len(made.Generated) > 0 {
			return
		}
		answer.used = made.FactsUsed
	}
	s.answers.Change(tenant, t.inputs, func(known *[]sharedAnswer) {
		answers := append(slices.Clone(*known), answer) // others read the previous ones
		*known = answers[max(0, len(answers)-sharedVariants):]
	})
}
