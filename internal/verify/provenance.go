// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	openpgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/cluster-chandler/chandler/internal/message"
)

// maxSigned is the size of the part of a provenance file that names archives and their digests.
const maxSigned = 64 << 10 // bytes

// maxNamed is how many keys a message names.
const maxNamed = 4

// Keyring is whose provenance files count.
type Keyring struct {
	// Fingerprint is the SHA-256 of the keyring, in hex.
	Fingerprint string

	keys openpgp.EntityList
}

// ParseKeyring reads OpenPGP public keys: as they are, or armored, in any number of
// blocks with any text around them.
func ParseKeyring(data []byte) (*Keyring, error) {
	keys, err := openpgp.ReadKeyRing(bytes.NewReader(data))
	if err != nil || len(keys) == 0 {
		keys, err = readArmored(data)
	}
	if err != nil || len(keys) == 0 {
		return nil, errors.New("it has no OpenPGP public keys that can be read; write it with `gpg --export`. (The .kbx files of GnuPG are none)")
	}
	sum := sha256.Sum256(data)
	return &Keyring{Fingerprint: hex.EncodeToString(sum[:]), keys: keys}, nil
}

// readArmored reads all blocks: whoever adds a key to a file adds one. None is left out
// in silence.
func readArmored(data []byte) (keys openpgp.EntityList, err error) {
	rest := bufio.NewReader(bytes.NewReader(data)) // one for all: a block ends in the middle of what is read
	for blocks := 0; ; blocks++ {
		block, err := armor.Decode(rest)
		if errors.Is(err, io.EOF) && blocks == bytes.Count(data, []byte("-----BEGIN PGP")) {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		some, err := openpgp.ReadKeyRing(block.Body)
		if err != nil || len(some) == 0 {
			return nil, errors.New("a block that is no key")
		}
		keys = append(keys, some...)
	}
}

// String says who is wanted.
func (k *Keyring) String() string {
	var wanted []string
	for _, key := range k.keys {
		wanted = append(wanted, fmt.Sprintf("the OpenPGP key %X", key.PrimaryKey.Fingerprint))
	}
	return message.List(wanted, ", or ", maxNamed)
}

// Verify checks that somebody who counts signed the archive with the digest, under
// a name that fits. A provenance file that doesn't say so is [failure.SignatureInvalid].
func (k *Keyring) Verify(file []byte, digest string, fits func(name string) bool, now time.Time) error {
	block, _ := clearsign.Decode(file)
	if block == nil {
		return flaw("it is no provenance file")
	}
	if err := k.check(block.Bytes, block.ArmoredSignature.Body, now); err != nil {
		return err
	}
	// Whoever signs isn't trusted with our memory: tenants have keyrings of their own.
	// Aliases in YAML make much of little, and Helm writes none.
	_, signed, _ := bytes.Cut(block.Plaintext, []byte("\n...\n"))
	if len(signed) > maxSigned || bytes.ContainsAny(signed, "&*") {
		return flaw("what it signs is too large, or isn't as Helm writes it")
	}
	sums := &provenance.SumCollection{}
	if err := provenance.ParseMessageBlock(block.Plaintext, nil, sums); err != nil {
		return flaw("it signs a text that isn't Helm's")
	}
	names := slices.Sorted(maps.Keys(sums.Files))
	for _, name := range names {
		if sums.Files[name] == digest && fits(name) {
			return nil
		}
	}
	return flaw("it is of another archive, or calls it otherwise: it names %+.256q", strings.Join(names, ", "))
}

// check checks a signature of a text that a key of the ring has to have made.
func (k *Keyring) check(text []byte, signature io.Reader, now time.Time) error {
	config := &packet.Config{Time: func() time.Time { return now }}
	_, err := openpgp.CheckDetachedSignature(k.keys, bytes.NewReader(text), signature, config)
	switch {
	case errors.Is(err, openpgperrors.ErrUnknownIssuer):
		return flaw("it is made with a key that isn't in the keyring")
	case errors.Is(err, openpgperrors.ErrKeyExpired), errors.Is(err, openpgperrors.ErrKeyRevoked), errors.Is(err, openpgperrors.ErrSignatureExpired):
		return flaw("it has expired, or its key, or that was revoked")
	case err != nil:
		return flaw("it is damaged, or made in a way that isn't safe any more")
	}
	return nil
}
