// SPDX-License-Identifier: Apache-2.0

// Package opener looks into what comes from elsewhere: archives, charts, indexes of Helm
// repositories, YAML. All of that may be hostile, so a manager never opens it itself. It
// hands a [Job] to an [Opener]: a pool of worker processes (package render). These have
// limits on memory and time, and neither files nor network.
package opener

import (
	"context"
	"errors"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/commit"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Opener has jobs done by workers. Errors of a job's content are [*failure.Error]s.
type Opener interface {
	Open(ctx context.Context, job *Job) (*Opened, error)
}

// Job tells a worker what to open. A single pointer is set.
type Job struct {
	Unpack  *Unpack
	Index   *Index
	YAML    *YAML
	Package *Package
	Commit  *Commit
}

// Unpack asks for the files of an artifact.
type Unpack struct {
	Content artifact.Content
	Limits  artifact.Limits
	// Document is a YAML file, at the root or in the only directory, that is wanted as JSON, too; "" for none.
	Document string
}

// Index asks for the versions that the index.yaml of a Helm repository lists.
type Index struct{ Data []byte }

// YAML asks for a document as JSON.
type YAML struct{ Data []byte }

// Package asks for the files of a chart's directory that Helm would package.
type Package struct{ Files []artifact.File }

// Commit asks for the files of a commit in a pack of Git.
type Commit struct {
	Pack   []byte
	Commit string
	Limits artifact.Limits
}

// Opened is the result of a job. The fields of other jobs are empty.
type Opened struct {
	Files []artifact.File
	// Commit is a commit of Git.
	Commit commit.Read
	// Name and Version are what the Chart.yaml of an unpacked chart says.
	Name, Version string
	// Charts are the versions of an index, by the charts' names.
	Charts map[string][]ChartVersion
	// JSON is a YAML document; nil if an artifact has none, or what is there isn't YAML.
	JSON []byte
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
	case job.Package != nil:
		files, err := artifact.Packaged(job.Package.Files)
		return &Opened{Files: files}, err
	case job.Commit != nil:
		read, err := commit.Open(job.Commit.Pack, job.Commit.Commit, job.Commit.Limits)
		return &Opened{Commit: read}, err
	}
	return &Opened{}, nil
}

func unpack(job *Unpack) (*Opened, error) {
	files, err := job.Content.Unpack(job.Limits)
	if err != nil {
		return nil, err
	}
	opened := &Opened{Files: files}
	var is struct{ Name, Version string }
	file := artifact.Find(files, artifact.ChartFile)
	if !job.Content.Kind.Verbatim() && file != nil && yaml.Unmarshal(file.Data, &is) == nil { // as Helm reads it
		opened.Name, opened.Version = is.Name, is.Version
	}
	document := artifact.Find(files, artifact.OnlyDirectory(artifact.Names(files))+job.Document)
	if document == nil {
		return opened, nil
	}
	opened.JSON, err = toJSON(document.Data)
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactInvalid {
		return opened, nil
	}
	return opened, err
}

// maxJSON bounds a document as JSON: aliases may make much of little YAML.
const maxJSON = 64 << 10 // bytes

// toJSON returns a YAML document as JSON. If a key is there twice, it takes the last one.
func toJSON(data []byte) ([]byte, error) {
	document, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't YAML: %w", err)
	}
	if len(document) > maxJSON {
		return nil, failure.TooLarge("it, with its aliases written out,", maxJSON)
	}
	return document, nil
}
