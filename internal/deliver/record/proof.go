// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// A record is a Secret of the workload cluster, so others may write it. A caller that keeps the proof of a record
// elsewhere can tell later whether the record still says and holds the same. The data is proven by a digest in the
// metadata, and the metadata by [Summary.Proof]. Progress is in neither: an inventory, hooks that ran, a status.

// Proof returns the digest of what the metadata says for good of a revision, as "sha256:" and 64 hex
// digits, with a slash and the UID of its owner. It is "" for a record that Chandler didn't write last.
func (s Summary) Proof() string {
	if !s.Complete || s.Content == "" {
		return ""
	}
	terms := s.Terms
	terms.Postconditions = "" // progress
	terms.DependsOn = nil     // joined below: none may be nil or empty
	digest := digestOf(struct {
		Release
		Revision                            int
		Owner                               string
		Terms                               Terms
		DependsOn                           string
		Digest, Artifact, FactsUsed         string
		Chart, Version, AppVersion          string
		RenewAt                             time.Time
		RolledBack, Adopts, Previous, Holds string
	}{
		s.Release, s.Revision, s.Owner, terms, strings.Join(s.DependsOn, ","), s.Digest, s.Artifact, s.FactsUsed, s.Chart, s.Version, s.AppVersion,
		s.RenewAt.UTC().Truncate(time.Second), s.RolledBack, s.Adopts, s.Previous, s.Content,
	})
	return digest + "/" + string(s.OwnerUID)
}

// ProofOwner returns the UID of the owner that a record had when it was proven, "" for none.
func ProofOwner(proof string) types.UID {
	_, uid, _ := strings.Cut(proof, "/")
	return types.UID(uid)
}

// IsProvenBy reports whether a proof is the record's. The record may say Orphan where another policy was written:
// that deletes nothing, and people say it there to end a removal whose hooks fail.
func (s Summary) IsProvenBy(proof string) bool {
	if proof == "" || s.Proof() == proof {
		return proof != ""
	}
	if s.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		return false
	}
	s.DeletionPolicy = addonsv1.DeletionPolicyDelete
	return s.Proof() == proof
}

// IsIntact reports whether the record's data is what its metadata says.
func (r *Record) IsIntact() bool {
	return r.holds != "" && r.holds == r.Content && (r.State.Adopted == nil || r.State.Adopted.String() == r.Adopts)
}

// Seal notes the digest of the record's data, and the release that it adopts, in its metadata. The maker of a record
// seals it once, with a salt of its own.
func (r *Record) Seal(salt string) {
	r.State.Salt = salt
	if r.State.CRDsDigest = ""; len(r.CRDs) > 0 {
		r.State.CRDsDigest = digestOf(r.CRDs)
	}
	if r.Adopts = ""; r.State.Adopted != nil {
		r.Adopts = r.State.Adopted.String()
	}
	r.holds = r.contentDigest()
	r.Content = r.holds
}

// SealAs seals the record with the salt of another one, and reports whether both hold the same.
func (r *Record) SealAs(other *Record) bool {
	if other.holds == "" {
		return false
	}
	r.Seal(other.State.Salt)
	return r.holds == other.holds
}

// contentDigest returns the digest of the manifest, the hooks and the CRDs. The CRDs may be gone: they
// are dropped once they are applied.
func (r *Record) contentDigest() string {
	if r.State == nil || len(r.CRDs) > 0 && digestOf(r.CRDs) != r.State.CRDsDigest {
		return ""
	}
	hooks := make([]helmrelease.Hook, 0, len(r.Helm.Hooks))
	for _, h := range r.Helm.Hooks {
		hook := *h
		hook.LastRun = helmrelease.HookExecution{} // progress
		hooks = append(hooks, hook)
	}
	pieces := []any{hooks, r.State.CRDsDigest}
	if r.State.Salt != "" {
		pieces = append(pieces, r.State.Salt)
	}
	for line := range strings.Lines(r.Helm.Manifest) { // as a whole it would be encoded in ten times its memory
		pieces = append(pieces, line)
	}
	return digestOf(pieces...)
}

// String is "namespace/name".
func (a AdoptedRelease) String() string { return a.StorageNamespace + "/" + a.Name }

// digestOf returns the digest of values in JSON, each in a line.
func digestOf(values ...any) string {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return "" // no value here holds anything that JSON lacks; and nothing has this digest
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
