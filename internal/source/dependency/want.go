// SPDX-License-Identifier: Apache-2.0

// Package dependency tells what a chart depends on and doesn't have, and puts a chart together
// with its dependencies. It asks nobody: where they are fetched is package source.
package dependency

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// Max is how many dependencies a chart may have, those of its
	// dependencies counted in. Large umbrella charts have 30.
	Max = 64
	// MaxDepth is how deep dependencies may depend on others. 1 is common.
	MaxDepth = 4
)

// Want is a dependency that has to be fetched, as it isn't in charts/.
type Want struct {
	// Within is the directory of the chart that wants it: "" for that of the artifact.
	Within string
	// by is the name and version of that chart; field is where it says so, as in
	// "dependencies[1] of Chart.yaml".
	by, field string

	Name, Version, Repository string
	// Subject is the address that is asked, and Keys where credentials for it may be put.
	Subject, Keys string
}

// Part is a dependency that was fetched, and the directory of the chart that it belongs in.
type Part struct {
	Directory string
	Digest    string
	Files     []artifact.File
}

// fieldOf names a dependency.
func fieldOf(file string, index int) string {
	return fmt.Sprintf("dependencies[%d] of %s", index, file)
}

// String names the dependency, and where Chart.yaml says that it is.
func (w Want) String() string {
	text := w.field + " of chart " + failure.Quote(w.by) + ", " + failure.Quote(strings.TrimSpace(w.Name+" "+w.Version))
	if w.Repository == "" {
		return text
	}
	at, err := url.Parse(w.Repository)
	if err != nil || at.User != nil || at.RawQuery != "" {
		return text // the address may hold a secret
	}
	return text + " at " + failure.Quote(w.Repository)
}

// Refused is an error about the dependency, seen from its chart. What is said of fields
// of the API is left out: the address isn't from there.
func (w Want) Refused(err error) *failure.Error {
	failed := failure.Error{Reason: failure.SourceUnavailable, Err: err}
	var known *failure.Error
	if errors.As(err, &known) {
		failed = *known
	}
	said := failed.Err
	switch failed.Reason {
	case failure.ArtifactNotFound, failure.ArtifactChanged:
		what, _, _ := strings.Cut(said.Error(), "; ")
		said = errors.New(what + "; publish it there, or correct the dependency and run `helm dependency update`")
	case failure.SourceUnauthorized:
		if failed.Subject != "" && failed.Subject != w.Subject {
			said = fmt.Errorf("%s: %w", failed.Subject, said) // a Secret that can't be used
			break
		}
		what, _, _ := strings.Cut(said.Error(), "; ")
		said = fmt.Errorf("%s; add credentials for its host to %s", what, w.Keys)
	}
	failed.Field, failed.Subject = "", "" // those of the chart
	failed.Err = fmt.Errorf("%s: %w", w, said)
	return &failed
}

// Is checks that what was fetched is the dependency.
func (w Want) Is(files []artifact.File) error {
	name, version := ChartOf(files)
	if name != w.Name || strings.TrimPrefix(version, "v") != strings.TrimPrefix(w.Version, "v") {
		return failure.New(failure.ArtifactInvalid, "what is published there is chart %s; publish the right one, or correct the dependency and run `helm dependency update`", failure.Quote(name+" "+version))
	}
	return nil
}

// TooMany is the error of a chart with more than [Max] of them.
func TooMany() *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d dependencies, the most that is accepted, those of its dependencies counted in; package the chart with them (`helm package --dependency-update`)", Max)
}
