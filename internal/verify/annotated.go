// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// oldBundleType is that of bundles whose log entries are proven by a promise of the
// log, as annotations have it, instead of by the place in its tree.
const oldBundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// signature verifies that the payload is signed with a certificate. What the
// annotations have is put together as a bundle, for the same checks.
func (k *Keyless) signature(s Signature, raw []byte) error {
	certificate, _ := pem.Decode([]byte(s.Annotations[annotationCertificate]))
	if certificate == nil {
		return flaw("its certificate can't be read")
	}
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: certificate.Bytes}},
		}},
	}
	if text := s.Annotations[annotationLogEntry]; text != "" {
		entry, err := logEntry(text)
		if err != nil {
			return flaw("its entry of a transparency log can't be read")
		}
		material.TlogEntries = append(material.TlogEntries, entry)
	}
	if text := s.Annotations[annotationTimestamp]; text != "" {
		var timestamp struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &timestamp); err != nil {
			return flaw("its timestamp can't be read")
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamp.SignedRFC3161Timestamp}},
		}
	}
	sum := sha256.Sum256(s.Payload)
	signed, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType:            oldBundleType,
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     raw,
		}},
	})
	if err != nil {
		return flaw("its annotations make no signature")
	}
	return k.check(signed, verify.WithArtifact(bytes.NewReader(s.Payload)))
}

// logEntry reads the entry of a transparency log, with the log's promise.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	var entry struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return nil, err
	}
	log, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.Payload.Body, &kind); err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          entry.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: log},
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}, nil
}
