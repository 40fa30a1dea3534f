// SPDX-License-Identifier: Apache-2.0

// Package bundle makes the add-ons of a stack from its bundle (spec.source).
//
// Charts of a bundle get their digests, so that one which is the same in the next
// bundle isn't applied again ([Expand]). A stack without add-ons of its own gets those
// of the Cluster Stack release that its bundle has to be.
//
// It reads no source: callers hand it the bundle's files.
package bundle

import (
	"errors"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Files of a bundle. A path may lead into archives, as in "addons.tgz/cni".
type Files interface {
	// Names of the files outside of archives, sorted.
	Names() []string
	// Read returns a file; false if there is none.
	Read(path string) ([]byte, bool, error)
	// ReadYAML returns a YAML file as JSON; false if there is none.
	ReadYAML(path string) ([]byte, bool, error)
	// ChartDigest is the digest of the chart at the path: an archive, or a directory.
	ChartDigest(path string) (string, error)
}

// Expansion is what a stack's bundle makes of it.
type Expansion struct {
	// Addons of the stack, each chart of the bundle with its digest.
	Addons []addonsv1.Addon
	// Notes say what the bundle is, and what of it isn't used. They are few, and short.
	Notes []string
}

// refuse returns the error of a bundle that can't be used. Its text names the file, and the way out.
func refuse(format string, args ...any) error {
	return failure.New(addonsv1.InvalidSourceReason, format, args...)
}

// ofAddon returns an error with the add-on that its field is of.
func ofAddon(name string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	located := *failed
	located.Field = fmt.Sprintf("addons[%s].%s", name, failed.Field)
	return &located
}

// Expand makes the add-ons of a stack with spec.source from its bundle: its own, with the digests of
// their charts, or without any those of a Cluster Stack release. A digest that is there already
// has to be the chart's. A [*failure.Error] names a field of the spec only if it is about an add-on of that. Its reason is
// InvalidSource if it is about the bundle, any other one is of files.
func Expand(files Files, spec *addonsv1.AddonStackSpec) (*Expansion, error) {
	if len(spec.Addons) == 0 {
		return release(files, spec.Source)
	}
	addons := slices.Clone(spec.Addons)
	for i := range addons {
		name, chart := addons[i].Name, &addons[i].Chart
		if chart.Path == "" {
			continue
		}
		digest, err := files.ChartDigest(chart.Path)
		if err != nil {
			return nil, ofAddon(name, err)
		}
		if chart.Digest != "" && chart.Digest != digest {
			return nil, ofAddon(name, &failure.Error{Reason: addonsv1.InvalidSourceReason, Field: "chart.digest", Err: fmt.Errorf(
				"the bundle's chart has digest %s, not %s; correct it, or the bundle", digest, chart.Digest)})
		}
		chart.Digest = digest
	}
	return &Expansion{Addons: addons}, nil
}
