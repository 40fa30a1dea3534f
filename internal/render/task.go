// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// task is a request on its way to a worker. While it waits for one, it is in memory once: it is encoded on the way.
type task struct {
	req *protocol.Request
	// contents of files are taken out of the request, and sent as they are.
	contents [][]byte
	// inputs are all that the answer depends on, but for the facts of a cluster that a chart may ask for.
	inputs [sha256.Size]byte
	// whole is the digest of the inputs with these facts.
	whole [sha256.Size]byte
	// size of the request, and of its contents alone, in bytes.
	size, contentBytes int64
	// timeout of the job.
	timeout time.Duration
}

// newTask takes the contents out of a request. The caller has to attach them again.
func newTask(req *protocol.Request, timeout time.Duration) (*task, error) {
	t := &task{req: req, contents: req.Detach(), timeout: timeout}
	for _, content := range t.contents {
		t.contentBytes += int64(len(content))
	}
	if req.ContentsDigest = ""; req.Chart != nil {
		req.ContentsDigest = req.Chart.Digest
	}
	if req.ContentsDigest == "" {
		sum := sha256.New()
		for _, content := range t.contents {
			writeSum(sum, content)
		}
		req.ContentsDigest = hex.EncodeToString(sum.Sum(nil))
	}
	plain, facts := *req, &protocol.Request{Chart: &job.Chart{}}
	if plain.Chart != nil {
		chart := *plain.Chart
		facts.Chart.Facts, chart.Facts = chart.Facts, job.Facts{}
		plain.Chart = &chart
	}
	payload, err := protocol.Encode(&plain)
	if err != nil {
		return t, err
	}
	ofFacts, err := protocol.Encode(facts)
	t.inputs, t.size = sha256.Sum256(payload), int64(len(payload)+len(ofFacts))+t.contentBytes
	sum := sha256.New()
	writeSum(sum, payload)
	writeSum(sum, ofFacts)
	sum.Sum(t.whole[:0])
	if index := req.Open; index != nil && index.Index != nil {
		t.timeout = min(timeout, indexTimeout+time.Duration(t.size>>20)*indexTimeoutPerMiB)
	}
	return t, err
}

// writeSum adds a part to a sum so that no other parts have the same one.
func writeSum(sum hash.Hash, part []byte) {
	digest := sha256.Sum256(part)
	sum.Write(digest[:])
}

// indexTimeout is how long a worker reads the index of a repository. Honest ones take 0.15 s for each MiB on a machine that
// does nothing else. A hostile one takes all of it, each time that it is asked for.
const (
	indexTimeout       = 3 * time.Second
	indexTimeoutPerMiB = time.Second / 4
)
