// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/cluster-chandler/chandler/internal/lru"
)

const (
	// sharedBytes bounds the answers that are kept for other clusters, as workers send them.
	sharedBytes = 8 << 20
	// sharedVariants is how many answers to one request are kept, of clusters with other facts.
	sharedVariants = 4
)

// sharedAnswers keeps answers for clusters whose inputs are the same: each of them gets objects of its
// own. What a chart made up, and what it was made of Secrets or of the cluster's objects, is
// never shared.
type sharedAnswers struct {
	mu      sync.Mutex
	answers *lru.Cache[[sha256.Size]byte, []sharedAnswer]
}

// sharedAnswer is a response in CBOR, and the facts on which it depends.
type sharedAnswer struct {
	payload []byte
	used    FactsUsed
}

func newSharedAnswers() *sharedAnswers {
	return &sharedAnswers{answers: lru.New[[sha256.Size]byte](sharedBytes, func(answers []sharedAnswer) (bytes int64) {
		for _, a := range answers {
			bytes += int64(len(a.payload))
		}
		return bytes
	})}
}

// shareKey identifies all that the answer depends on but the facts; false if it isn't shared.
func (req *request) shareKey() (key [sha256.Size]byte, _ bool, _ error) {
	plain := *req
	switch c := req.Chart; {
	case c != nil && len(c.Generated)+len(c.Sensitive)+len(c.Answers)+len(c.LiveObjects) > 0:
		return key, false, nil
	case c != nil:
		without := *c
		without.Facts = Facts{}
		plain.Chart = &without
	case req.Kustomization == nil && req.Manifests == nil:
		return key, false, nil
	}
	payload, err := encodeRequest(&plain)
	return sha256.Sum256(payload), err == nil, err
}

// find returns the answer for a cluster with these facts; nil if there is none.
func (s *sharedAnswers) find(key [sha256.Size]byte, facts Facts) *response {
	s.mu.Lock()
	answers, _ := s.answers.Get(key)
	s.mu.Unlock()
	for _, a := range answers {
		resp := &response{}
		if a.used.Holds(facts) && decoding.Unmarshal(a.payload, resp) == nil {
			return resp
		}
	}
	return nil
}

// keep keeps an answer for others, if it may be theirs.
func (s *sharedAnswers) keep(key [sha256.Size]byte, resp *response) {
	if resp.Result == nil || resp.Result.Made || len(resp.Result.Generated)+len(resp.Asked) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answers, _ := s.answers.Get(key)
	answers = append(slices.Clone(answers), sharedAnswer{payload: resp.payload, used: resp.Result.FactsUsed})
	s.answers.Put(key, answers[max(0, len(answers)-sharedVariants):])
}
