// SPDX-License-Identifier: Apache-2.0

// Package opener looks into what comes from elsewhere: archives, charts, indexes of Helm
// repositories, YAML. All of that may be hostile, so a manager never opens it itself: it
// hands a [Job] to an [Opener], a pool of worker processes with limits on memory and time,
// and without files and network (package render).
package opener

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// Opener has jobs done by workers. Errors of a job's content are [*failure.Error]s.
type Opener interface {
	Open(ctx context.Context, job *Job) (*Opened, error)
}

// Job is what a worker is to open. One of the pointers is set.
type Job struct {
	Unpack     *Unpack
	Index      *Index
	YAML       *YAML
	Neighbours *Neighbours
	Complete   *Complete
}

// Unpack asks for the files of an artifact.
type Unpack struct {
	Content artifact.Content
	Limits  artifact.Limits
}

// Index asks for the versions that the index.yaml of a Helm repository lists.
type Index struct{ Data []byte }

// YAML asks for a document as JSON.
type YAML struct{ Data []byte }

// Neighbours asks which directories beside a chart's its Chart.yaml depends on (file://).
type Neighbours struct {
	// At is the chart's path in its artifact.
	At    string
	Files []artifact.File
}

// Complete asks for a chart with its neighbours in its charts directory.
type Complete struct {
	// At is the chart's path in its artifact.
	At string
	// Charts are the files of the chart, and of its neighbours, by their paths.
	Charts map[string][]artifact.File
	Limits artifact.Limits
}

// Opened is what a job came to. What belongs to other jobs is empty.
type Opened struct {
	Files []artifact.File
	// Name and Version are what the Chart.yaml of an unpacked chart says.
	Name, Version string
	// Charts are the versions of an index, by the charts' names.
	Charts map[string][]ChartVersion
	// JSON is a YAML document.
	JSON []byte
	// Paths are those of neighbours.
	Paths []string
}

// ChartVersion is an entry of a Helm repository's index.
type ChartVersion struct {
	Version string
	// URL of the archive, absolute or relative to the repository's; "" if there is none.
	URL string
	// Digest of the archive as the index says it; it may be "".
	Digest string
}

// Run does a job in this process. Workers call it, and nobody else.
func Run(job *Job) (*Opened, error) {
	switch {
	case job.Unpack != nil:
		return unpack(job.Unpack)
	case job.Index != nil:
		charts, err := readIndex(job.Index.Data)
		return &Opened{Charts: charts}, err
	case job.YAML != nil:
		document, err := toJSON(job.YAML.Data)
		return &Opened{JSON: document}, err
	case job.Neighbours != nil:
		return &Opened{Paths: neighboursOf(job.Neighbours.At, job.Neighbours.Files)}, nil
	case job.Complete != nil:
		files, err := complete(job.Complete)
		return &Opened{Files: files}, err
	}
	return &Opened{}, nil
}

func unpack(job *Unpack) (*Opened, error) {
	files, err := job.Content.Unpack(job.Limits)
	if err != nil {
		return nil, err
	}
	opened := &Opened{Files: files}
	if !job.Content.Kind.Verbatim() {
		opened.Name, opened.Version = chartOf(files)
	}
	return opened, nil
}
