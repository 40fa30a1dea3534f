// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// Required is the directory of the instance's own keys, by one of which all that comes
// from elsewhere has to be signed, whatever objects say. "" requires nothing. It is read
// again each time: so it can be changed without a restart.
type Required string

// For reports whether the reference's content needs such a signature. Content below the artifact
// root is the administrator's. Content in a bundle came with the bundle.
func (d Required) For(ref reference.Reference) bool { return d != "" && ref.Chart.Path == "" }

// Of reads the policies one of which has to be met. There is none for content that can't
// have such a signature.
func (d Required) Of(ref reference.Reference) ([]Policy, error) {
	var met []Policy
	if ref.Traits().Registry {
		keys, err := parseAll(d, ".pub", verify.ParsePublicKey)
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
	if ref.Kind == artifact.KindChart && ref.Traits().Provenance || ref.Traits().Commits {
		rings, err := parseAll(d, ".gpg", verify.ParseKeyring)
		if err != nil {
			return nil, err
		}
		for _, ring := range rings {
			met = append(met, made(Policy{Keyring: ring, ByInstance: true}, []string{"keyring " + ring.Fingerprint, ref.ArchiveNames()[0]}))
		}
	}
	return met, nil
}

// parseAll parses the files whose names end so.
func parseAll[T any](d Required, suffix string, parse func([]byte) (T, error)) (all []T, err error) {
	files, err := credentials.ReadFiles(string(d))
	if err != nil {
		return nil, ofInstance(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		parsed, err := parse(files[name])
		if err != nil {
			return nil, ofInstance(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, parsed)
	}
	return all, nil
}

// ofInstance returns an error about the instance's own keys.
func ofInstance(err error) *failure.Error {
	return &failure.Error{Reason: failure.VerificationPolicyInvalid, Subject: "the provider instance's own keys (--require-signatures-by)", Err: err, RetryAfter: retry.Policy}
}
