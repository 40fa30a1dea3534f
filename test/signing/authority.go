// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/cluster-chandler/chandler/test/must"
)

// Authority is a Sigstore of its own: a certificate authority, a transparency log
// and a timestamp authority.
type Authority struct{ sigstore *ca.VirtualSigstore }

// Certified says how a signature with a certificate is made.
type Certified struct {
	Subject, Issuer string
	// LoggedAt is when the log says that it got it. Defaults to while the
	// certificate is valid.
	LoggedAt time.Time
	// Unlogged leaves the log's entry off, and Untimed the timestamp.
	Unlogged, Untimed bool
}

// NewAuthority makes one that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	sigstore, err := ca.NewVirtualSigstore()
	must.Succeed(t, err)
	return &Authority{sigstore}
}

// Trust is what of an authority a trust root has.
type Trust struct{ Log, Timestamps, CertificateLog bool }

// TrustRoot is the authority's trusted_root.json.
func (a *Authority) TrustRoot(t testing.TB, with Trust) []byte {
	t.Helper()
	var timestamps []root.TimestampingAuthority
	var logs, certificateLogs map[string]*root.TransparencyLog
	if with.Timestamps {
		timestamps = a.sigstore.TimestampingAuthorities()
	}
	if with.Log {
		logs = identified(t, a.sigstore.RekorLogs())
	}
	if with.CertificateLog {
		certificateLogs = identified(t, a.sigstore.CTLogs())
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, a.sigstore.FulcioCertificateAuthorities(), certificateLogs, timestamps, logs)
	must.Succeed(t, err)
	data, err := trusted.MarshalJSON()
	must.Succeed(t, err)
	return data
}

// identified gives the logs their binary IDs, as a trust root has them.
func identified(t testing.TB, logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	t.Helper()
	for id, log := range logs {
		binary, err := hex.DecodeString(id)
		must.Succeed(t, err)
		log.ID = binary
	}
	return logs
}

// Sign signs the manifest with the digest, as a layer.
func (a *Authority) Sign(t testing.TB, digest string, how Certified) Layer {
	t.Helper()
	payload := Payload(digest)
	entity, err := a.sigstore.SignAtTime(how.Subject, how.Issuer, payload, how.loggedAt())
	must.Succeed(t, err)
	content, material := parts(t, entity)
	certificate, err := cryptoutils.MarshalCertificateToPEM(material.Certificate())
	must.Succeed(t, err)
	layer := Layer{Payload: payload, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(content.Signature()),
		"dev.sigstore.cosign/certificate":    string(certificate),
	}}
	if !how.Unlogged {
		entry := a.entry(t, entity)
		layer.Annotations["dev.sigstore.cosign/bundle"] = string(marshalJSON(t, map[string]any{
			"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
			"Payload": map[string]any{
				"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
				"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
			},
		}))
	}
	if !how.Untimed {
		layer.Annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(marshalJSON(t, map[string]any{"SignedRFC3161Timestamp": timestamps(t, entity)[0]}))
	}
	return layer
}

// Bundle signs the manifest with the digest, or makes another statement of it.
func (a *Authority) Bundle(t testing.TB, digest, predicate string, how Certified) []byte {
	t.Helper()
	entity, err := a.sigstore.AttestAtTime(how.Subject, how.Issuer, Statement(digest, predicate), how.loggedAt(), true)
	must.Succeed(t, err)
	content, certificate := parts(t, entity)
	envelope := content.EnvelopeContent().RawEnvelope()
	payload, err := envelope.DecodeB64Payload()
	must.Succeed(t, err)
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: certificate.Certificate().Raw}},
	}
	if !how.Unlogged {
		material.TlogEntries = append(material.TlogEntries, a.entry(t, entity))
	}
	if !how.Untimed {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamps(t, entity)[0]}},
		}
	}
	return marshal(t, &protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: envelope.PayloadType, Signatures: []*protodsse.Signature{{Sig: content.Signature()}},
		}},
	})
}

// entry is the log's, with its promise and what a bundle says of its kind.
func (a *Authority) entry(t testing.TB, entity *ca.TestEntity) *protorekor.TransparencyLogEntry {
	t.Helper()
	entries, err := entity.TlogEntries()
	must.Succeed(t, err)
	entry := entries[0].TransparencyLogEntry()
	var kind struct{ Kind, APIVersion string }
	must.Succeed(t, json.Unmarshal(entry.GetCanonicalizedBody(), &kind))
	entry.KindVersion = &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
	promise, err := a.sigstore.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
		LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	must.Succeed(t, err)
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	return entry
}

func (c Certified) loggedAt() time.Time {
	if c.LoggedAt.IsZero() {
		return time.Now().Add(5 * time.Minute)
	}
	return c.LoggedAt
}

func parts(t testing.TB, entity *ca.TestEntity) (verify.SignatureContent, verify.VerificationContent) {
	t.Helper()
	content, err := entity.SignatureContent()
	must.Succeed(t, err)
	material, err := entity.VerificationContent()
	must.Succeed(t, err)
	return content, material
}

func timestamps(t testing.TB, entity *ca.TestEntity) [][]byte {
	t.Helper()
	all, err := entity.Timestamps()
	must.Succeed(t, err)
	return all
}
