// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cluster-chandler/chandler/test/must"
)

// SignaturePredicate is the type of statement that stands for a signature.
const SignaturePredicate = "https://sigstore.dev/cosign/sign/v1"

// Key is a key pair.
type Key struct {
	// Public is the public key in PEM.
	Public []byte

	signer signature.Signer
}

// NewKey makes a key as `cosign generate-key-pair` does: ECDSA P-256.
func NewKey(t testing.TB) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return keyOf(t, private, err)
}

// NewRSAKey makes an RSA key.
func NewRSAKey(t testing.TB, bits int) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	return keyOf(t, private, err)
}

// NewEd25519Key makes an Ed25519 key.
func NewEd25519Key(t testing.TB) Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return keyOf(t, private, err)
}

func keyOf(t testing.TB, private crypto.Signer, err error) Key {
	t.Helper()
	must.Succeed(t, err)
	signer, err := signature.LoadSigner(private, crypto.SHA256)
	must.Succeed(t, err)
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	must.Succeed(t, err)
	return Key{Public: public, signer: signer}
}

// Layer is a signature as it is kept below the tag sha256-<hex>.sig.
type Layer struct {
	Payload     []byte
	Annotations map[string]string
}

// Payload is the text that cosign signs for a manifest.
func Payload(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.example.org/demo"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// Statement is the in-toto statement of a manifest.
func Statement(digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"","digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

// Sign signs the manifest with the digest.
func (k Key) Sign(t testing.TB, digest string) Layer {
	t.Helper()
	return k.SignText(t, Payload(digest))
}

// SignText signs any text.
func (k Key) SignText(t testing.TB, text []byte) Layer {
	t.Helper()
	return Layer{Payload: text, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(k.sign(t, text)),
	}}
}

// Bundle signs the manifest with the digest, or makes another statement of it.
func (k Key) Bundle(t testing.TB, digest, predicate string) []byte {
	t.Helper()
	const payloadType = "application/vnd.in-toto+json"
	statement := Statement(digest, predicate)
	signed := k.sign(t, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement))
	return marshal(t, &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: "any"}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: statement, PayloadType: payloadType, Signatures: []*protodsse.Signature{{Sig: signed}},
		}},
	})
}

func (k Key) sign(t testing.TB, text []byte) []byte {
	t.Helper()
	signed, err := k.signer.SignMessage(bytes.NewReader(text))
	must.Succeed(t, err)
	return signed
}

func marshal(t testing.TB, bundle *protobundle.Bundle) []byte {
	t.Helper()
	data, err := protojson.Marshal(bundle)
	must.Succeed(t, err)
	return data
}

func marshalJSON(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	must.Succeed(t, err)
	return data
}
