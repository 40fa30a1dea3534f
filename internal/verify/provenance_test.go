// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestProvenance(t *testing.T) {
	const name = "demo-1.0.0.tgz"
	archive := []byte("an archive")
	key := signing.NewOpenPGPKey(t, 0)
	short := signing.NewOpenPGPKey(t, time.Hour)
	ring, err := ParseKeyring(append(bytes.Clone(short.Public), key.Public...))
	must.Succeed(t, err)
	armored, err := ParseKeyring(key.Armored)
	must.Succeed(t, err)
	good := key.Provenance(t, archive, name)
	for title, c := range map[string]struct {
		file  []byte
		after time.Duration
		flaw  string
	}{
		"good":            {file: good},
		"good, years on":  {file: good, after: 100_000 * time.Hour},
		"good, short key": {file: short.Provenance(t, archive, name)},
		"expired key":     {file: short.Provenance(t, archive, name), after: 2 * time.Hour, flaw: "has expired"},
		"other key":       {file: signing.NewOpenPGPKey(t, 0).Provenance(t, archive, name), flaw: "a key that isn't in the keyring"},
		"other archive":   {file: key.Provenance(t, []byte("another"), name), flaw: `it names "demo-1.0.0.tgz"`},
		"other version":   {file: key.Provenance(t, archive, "demo-0.9.0.tgz"), flaw: `it names "demo-0.9.0.tgz"`},
		"changed":         {file: bytes.Replace(good, []byte("demo-1.0.0"), []byte("demo-1.0.1"), 1), flaw: "damaged"},
		"cut":             {file: good[:len(good)/2], flaw: "it is no provenance file"},
		"garbage":         {file: []byte("404"), flaw: "it is no provenance file"},
		"empty":           {flaw: "it is no provenance file"},
	} {
		t.Run(title, func(t *testing.T) {
			fits := func(is string) bool { return is == name }
			expectFlaw(t, ring.Verify(c.file, "sha256:"+hexSum(archive), fits, time.Now().Add(c.after)), c.flaw)
		})
	}
	t.Run("what is signed grows", func(t *testing.T) {
		yamlbombs.AreRefused(t, func(text string) error {
			signed := key.SignText(t, "name: demo\n\n...\nfiles:\n  "+name+": sha256:"+hexSum(archive)+"\n"+text)
			return ring.Verify(signed, "sha256:"+hexSum(archive), func(string) bool { return true }, time.Now())
		})
	})
	if err := armored.Verify(good, "sha256:"+hexSum(archive), func(string) bool { return true }, time.Now()); err != nil {
		t.Error(err)
	}
}

// A keyring is what people put together with `>>`.
func TestKeyringOfSeveralParts(t *testing.T) {
	const name = "demo-1.0.0.tgz"
	archive := []byte("an archive")
	one, two := signing.NewOpenPGPKey(t, 0), signing.NewOpenPGPKey(t, 0)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for title, data := range map[string][]byte{
		"binary":             join(one.Public, two.Public),
		"armored":            join(one.Armored, []byte("\n"), two.Armored),
		"with carriage":      bytes.ReplaceAll(join(one.Armored, []byte("\n"), two.Armored), []byte("\n"), []byte("\r\n")),
		"with text":          join([]byte("These are our keys.\n\n"), one.Armored, []byte("\nThe newer one: (2026)\n"), two.Armored, []byte("\nThat is all.\n")),
		"with text in UTF-8": join([]byte("\u00d6ffentliche Schl\u00fcssel:\n"), one.Armored, []byte("\n"), two.Armored),
	} {
		t.Run(title, func(t *testing.T) {
			ring, err := ParseKeyring(data)
			must.Succeed(t, err)
			for _, key := range []signing.OpenPGPKey{one, two} {
				if err := ring.Verify(key.Provenance(t, archive, name), "sha256:"+hexSum(archive), func(string) bool { return true }, time.Now()); err != nil {
					t.Error(err)
				}
			}
			expectFlaw(t, ring.Verify(signing.NewOpenPGPKey(t, 0).Provenance(t, archive, name), "sha256:"+hexSum(archive), func(string) bool { return true }, time.Now()), "a key that isn't in the keyring")
		})
	}
	for title, data := range map[string][]byte{
		"nothing":          nil,
		"text":             []byte("These are our keys."),
		"no key in it":     join(one.Armored, []byte("\n"), one.Provenance(t, archive, name)),
		"one without head": join(one.Armored, []byte("\n"), bytes.Replace(two.Armored, []byte("\n\n"), []byte("\n"), 1)),
	} {
		if ring, err := ParseKeyring(data); err == nil {
			t.Errorf("%s: it is read as %s", title, ring)
		}
	}
}
