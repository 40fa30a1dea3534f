// SPDX-License-Identifier: Apache-2.0

// Package kubeversion reads versions of Kubernetes that others give: API servers, kubelets, Clusters
// and release records. Each of them may be hostile.
package kubeversion

import (
	"errors"

	"github.com/Masterminds/semver/v3"
)

const (
	// MaxLength is the most bytes that a version has.
	MaxLength = 64
	// MaxNumber is the highest major or minor number of a version, so that a loop over minor versions ends.
	MaxNumber = 999
)

// ErrNoVersion says that a text is no version of Kubernetes. It doesn't quote the text.
var ErrNoVersion = errors.New("this is no version of Kubernetes, as in v1.36.1")

// Parse reads a version with a leading "v" or without, as in v1.36.1-eks-1; "v1.36" is v1.36.0.
// A longer text than MaxLength, or a higher number than MaxNumber, is no version.
func Parse(text string) (*semver.Version, error) {
	if len(text) > MaxLength {
		return nil, ErrNoVersion
	}
	version, err := semver.NewVersion(text)
	if err != nil || version.Major() > MaxNumber || version.Minor() > MaxNumber {
		return nil, ErrNoVersion
	}
	return version, nil
}
