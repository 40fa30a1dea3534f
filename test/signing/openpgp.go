// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/cluster-chandler/chandler/test/must"
)

// OpenPGPKey signs provenance files and commits.
type OpenPGPKey struct {
	// Public is the public key, as `gpg --export` writes it, and Armored as
	// `gpg --export --armor` does.
	Public, Armored []byte

	entity *openpgp.Entity
}

// NewOpenPGPKey makes a key that is valid for that long; 0 is for ever.
func NewOpenPGPKey(t testing.TB, valid time.Duration) OpenPGPKey {
	t.Helper()
	config := &packet.Config{KeyLifetimeSecs: uint32(valid / time.Second), Algorithm: packet.PubKeyAlgoEdDSA}
	entity, err := openpgp.NewEntity("Demo", "", "demo@example.org", config)
	must.Succeed(t, err)
	var public, armored bytes.Buffer
	must.Succeed(t, entity.Serialize(&public))
	writer, err := armor.Encode(&armored, openpgp.PublicKeyType, nil)
	must.Succeed(t, err)
	if _, err := writer.Write(public.Bytes()); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, writer.Close())
	return OpenPGPKey{Public: public.Bytes(), Armored: armored.Bytes(), entity: entity}
}

// SignText is a text with a signature around it, as a provenance file is one.
func (k OpenPGPKey) SignText(t testing.TB, text string) []byte {
	t.Helper()
	var signed bytes.Buffer
	writer, err := clearsign.Encode(&signed, k.entity.PrivateKey, nil)
	must.Succeed(t, err)
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, writer.Close())
	return signed.Bytes()
}

// Commit returns the text of a commit with a signature, as `git commit -S` makes it.
func (k OpenPGPKey) Commit(t testing.TB, text string) string {
	t.Helper()
	var signature bytes.Buffer
	must.Succeed(t, openpgp.ArmoredDetachSign(&signature, k.entity, strings.NewReader(text), nil))
	headers, rest, _ := strings.Cut(text, "\n\n")
	return headers + "\ngpgsig " + strings.ReplaceAll(strings.TrimSpace(signature.String()), "\n", "\n ") + "\n\n" + rest
}

// Provenance is the provenance file of an archive with that name, as
// `helm package --sign` writes it.
func (k OpenPGPKey) Provenance(t testing.TB, archive []byte, name string) []byte {
	t.Helper()
	file, err := (&provenance.Signatory{Entity: k.entity}).ClearSign(archive, name, []byte("name: demo\n"))
	must.Succeed(t, err)
	return []byte(file)
}
