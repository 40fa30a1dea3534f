// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// MaxPublicKey is the size of a public key's PEM. The largest RSA keys have 3 KiB.
const MaxPublicKey = 16 << 10 // bytes

// PublicKey is a key that signatures may be made with.
type PublicKey struct {
	// Fingerprint is the SHA-256 of the key (its SubjectPublicKeyInfo in DER), in hex.
	Fingerprint string

	// A key doesn't say which hash its signatures are of: cosign takes SHA-256 for
	// all, or the one that belongs to the key's size.
	verifiers []signature.Verifier
}

// ParsePublicKey reads a public key in PEM.
func ParsePublicKey(data []byte) (PublicKey, error) {
	if len(data) > MaxPublicKey {
		return PublicKey{}, errors.New("it is too large for a public key; put the key itself there")
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil || block.Type != "PUBLIC KEY":
		return PublicKey{}, errors.New("it is no public key in PEM (-----BEGIN PUBLIC KEY-----); put cosign.pub there. (Certificates are for keyless verification, in a trust root)")
	case len(bytes.TrimSpace(rest)) > 0:
		return PublicKey{}, errors.New("there is more than one public key in it; give each its own reference")
	}
	const wayOut = "take ECDSA (P-256, P-384, P-521), RSA (2048 bits or more) or Ed25519"
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, errors.New("it is no public key that can be read: " + wayOut)
	}
	if err := cryptoutils.ValidatePubKey(key); err != nil { //nolint:staticcheck // its successor takes in a whole certificate authority
		return PublicKey{}, errors.New("the public key is too weak, or of a kind that isn't supported: " + wayOut)
	}
	sum := sha256.Sum256(block.Bytes)
	parsed := PublicKey{Fingerprint: hex.EncodeToString(sum[:])}
	if verifier, err := signature.LoadVerifier(key, crypto.SHA256); err == nil {
		parsed.verifiers = append(parsed.verifiers, verifier)
	}
	if verifier, err := signature.LoadDefaultVerifier(key); err == nil {
		parsed.verifiers = append(parsed.verifiers, verifier)
	}
	if len(parsed.verifiers) == 0 {
		return PublicKey{}, errors.New("the public key is of a kind that isn't supported: " + wayOut)
	}
	return parsed, nil
}

// signed reports whether the key made the signature of the message.
func (k PublicKey) signed(message, signed []byte) bool {
	for _, verifier := range k.verifiers {
		if verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(message)) == nil {
			return true
		}
	}
	return false
}
