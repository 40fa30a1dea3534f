// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/signing"
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
	if err != nil {
		t.Fatal(err)
	}
	armored, err := ParseKeyring(key.Armored)
	if err != nil {
		t.Fatal(err)
	}
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
		"other archive":   {file: key.Provenance(t, []byte("another"), name), flaw: `it is of another archive, "demo-1.0.0.tgz"`},
		"other version":   {file: key.Provenance(t, archive, "demo-0.9.0.tgz"), flaw: `says that it is "demo-0.9.0.tgz"`},
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
	if err := armored.Verify(good, "sha256:"+hexSum(archive), func(string) bool { return true }, time.Now()); err != nil {
		t.Error(err)
	}
}
