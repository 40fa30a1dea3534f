// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

// signatureHeader is the header of a commit that has its signature. Its further lines begin with a space
// (https://git-scm.com/docs/gitformat-signature).
const signatureHeader = "gpgsig "

// Signed returns the text of a commit that its signature is of, byte by byte, and the signature; nil if it has none, or several. A
// commit isn't decoded and encoded for that: what one reader of a header that is there twice takes, another doesn't.
func Signed(commit []byte) (text, signature []byte) {
	headers, rest, _ := bytes.Cut(commit, []byte("\n\n"))
	text = make([]byte, 0, len(commit))
	signatures, inside := 0, false
	for line := range bytes.Lines(append(bytes.Clone(headers), '\n')) {
		begins, continues := bytes.HasPrefix(line, []byte(signatureHeader)), bytes.HasPrefix(line, []byte(" "))
		switch inside = begins || inside && continues; {
		case begins:
			signatures++
			signature = append(signature, line[len(signatureHeader):]...)
		case inside:
			signature = append(signature, line[1:]...)
		default:
			text = append(text, line...)
		}
	}
	if signatures != 1 {
		return nil, nil
	}
	return append(append(text, '\n'), rest...), signature
}

// Check checks an armored signature of a text, as [Signed] returns both. One that no key of the ring made is [failure.SignatureInvalid].
func (k *Keyring) Check(text, signature []byte, now time.Time) error {
	block, err := armor.Decode(bytes.NewReader(signature))
	if err != nil || block.Type != openpgp.SignatureType {
		return flaw("it isn't one by OpenPGP")
	}
	return k.check(text, block.Body, now)
}
