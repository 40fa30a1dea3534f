// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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

// Error says why a bundle can't be used. Its text names the file, and the way out.
type Error struct{ Err error }

// Error is the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Expand makes the add-ons of a stack with spec.source from its bundle: its own, or
// without any those of a Cluster Stack release. Errors are of type [*Error], or those
// of files.
func Expand(files Files, spec *addonsv1.AddonStackSpec) (*Expansion, error) {
	if len(spec.Addons) == 0 {
		return release(files, spec.Source)
	}
	addons, err := pin(files, spec.Addons)
	if err != nil {
		return nil, err
	}
	return &Expansion{Addons: addons}, nil
}

// pin returns the add-ons with the digests of their charts in the bundle. A digest
// that is there already has to be the chart's.
func pin(files Files, own []addonsv1.Addon) ([]addonsv1.Addon, error) {
	pinned := make([]addonsv1.Addon, 0, len(own))
	for i := range own {
		addon := own[i]
		if addon.Chart.Path != "" {
			digest, err := files.ChartDigest(addon.Chart.Path)
			if err != nil {
				return nil, fmt.Errorf("addons[%s].%w", addon.Name, err) // it begins with the field
			}
			if said := addon.Chart.Digest; said != "" && said != digest {
				return nil, refuse("addons[%s].chart.digest: the bundle's chart has digest %s, not %s; correct it, or the bundle", addon.Name, digest, said)
			}
			addon.Chart.Digest = digest
		}
		pinned = append(pinned, addon)
	}
	return pinned, nil
}
