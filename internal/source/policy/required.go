// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// Required is the directory of the instance's own keys, by one of which all that comes
// from elsewhere has to be signed, whatever objects say. "" requires nothing. It is read
// anew each time: so it can be changed without a restart.
type Required string

// Names of files in the directory.
const (
	publicKeys = "*.pub"
	keyrings   = "*.gpg"
)

// For reports whether the reference's content needs such a signature. What is below the
// artifact root is the administrator's; what is in a bundle came with it.
func (d Required) For(ref reference.Reference) bool { return d != "" && ref.Chart.Path == "" }

// Of reads the policies one of which has to be met. There is none for content that can't
// have such a signature.
func (d Required) Of(ref reference.Reference) ([]Policy, error) {
	var met []Policy
	if ref.Chart.OCI != nil {
		keys, err := parseAll(d, publicKeys, verify.ParsePublicKey)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			decides := make([]string, 0, len(keys))
			for _, key := range keys {
				decides = append(decides, "key "+key.Fingerprint)
			}
			met = append(met, made(Policy{Cosign: &verify.Cosign{Keys: keys}, ByInstance: true}, decides))
		}
	}
	if ref.Kind == artifact.KindChart && ref.Remote() && ref.Chart.HTTP == nil {
		rings, err := parseAll(d, keyrings, verify.ParseKeyring)
		if err != nil {
			return nil, err
		}
		for _, ring := range rings {
			met = append(met, made(Policy{Keyring: ring, ByInstance: true}, []string{"keyring " + ring.Fingerprint, archiveNames(ref).String()}))
		}
	}
	return met, nil
}

// parseAll parses the files whose names fit.
func parseAll[T any](d Required, names string, parse func([]byte) (T, error)) ([]T, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, unreadable("the directory", err)
	}
	defer func() { _ = root.Close() }() // only read from
	files, err := fs.Glob(root.FS(), names)
	if err != nil {
		return nil, unreadable("the directory", err)
	}
	slices.Sort(files)
	var all []T
	for _, name := range files {
		data, err := fs.ReadFile(root.FS(), name)
		if err != nil {
			return nil, unreadable(name, err)
		}
		parsed, err := parse(data)
		if err != nil {
			return nil, ofInstance(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, parsed)
	}
	return all, nil
}

// unreadable leaves the directory's place out of the message.
func unreadable(what string, err error) *failure.Error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return ofInstance(fmt.Errorf("%s can't be read: %w", filepath.Base(what), err))
}

// ofInstance is an error about the instance's own keys.
func ofInstance(err error) *failure.Error {
	return &failure.Error{Reason: failure.VerificationPolicyInvalid, Subject: "the provider instance's own keys (--require-signatures-by)", Err: err, RetryAfter: policyRetry}
}
