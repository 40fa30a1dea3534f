// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/commit"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
)

// Types of a pack's objects.
const (
	commitObject, treeObject, blobObject = 1, 2, 3
	refDelta                             = 7
)

// pack is one that no Git server has to have made.
type pack struct {
	bytes.Buffer
	t     testing.TB
	count uint32
}

// add adds an object that says it has a size, and returns the hash of its content.
func (p *pack) add(kind int, data []byte, says int, base string) string {
	p.t.Helper()
	p.count++
	head := byte(kind<<4 | says&15)
	for says >>= 4; says > 0; says >>= 7 {
		p.WriteByte(head | 0x80)
		head = byte(says & 0x7f)
	}
	p.WriteByte(head)
	p.WriteString(base)
	compressed := zlib.NewWriter(p)
	_, err := compressed.Write(data)
	must.Succeed(p.t, errors.Join(err, compressed.Close()))
	return hashOf(kind, data)
}

func (p *pack) object(kind int, data string) string {
	p.t.Helper()
	return p.add(kind, []byte(data), len(data), "")
}

func hashOf(kind int, data []byte) string {
	name := map[int]string{commitObject: "commit", treeObject: "tree", blobObject: "blob"}[kind]
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", name, len(data)), data...))
	return string(sum[:])
}

// whole returns the pack with its head, and the commit of a tree as its last object.
func (p *pack) whole(tree string) (data []byte, is string) {
	p.t.Helper()
	is = hex.EncodeToString([]byte(p.object(commitObject, "tree "+hex.EncodeToString([]byte(tree))+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\na\n")))
	return p.headed(p.count), is
}

func (p *pack) headed(count uint32) []byte {
	data := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, count)...)
	data = append(data, p.Bytes()...)
	sum := sha1.Sum(data)
	return append(data, sum[:]...)
}

func entry(mode, name, hash string) string { return mode + " " + name + "\x00" + hash }

// delta makes nothing but the base again, times over.
func delta(base, size int, copies int) []byte {
	made := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(base)), uint64(size))
	for range copies {
		made = append(made, 0x80|0x10|0x20, byte(base), byte(base>>8))
	}
	return made
}

var limits = artifact.Limits{TotalBytes: 1 << 20, FileBytes: 64 << 10, Entries: 100}.WithDefaults()

func TestHostilePacks(t *testing.T) {
	for name, tc := range map[string]struct {
		make   func(p *pack) (data []byte, is string)
		reason string
	}{
		"good": {func(p *pack) ([]byte, string) {
			return p.whole(p.object(treeObject, entry("100644", "a", p.object(blobObject, "a"))))
		}, ""},
		"an object of gigabytes": {func(p *pack) ([]byte, string) {
			return p.whole(p.add(blobObject, make([]byte, 1<<20), 8<<30, ""))
		}, failure.ArtifactTooLarge},
		"an object that says it is small": {func(p *pack) ([]byte, string) {
			return p.whole(p.add(blobObject, make([]byte, 8<<20), 10, ""))
		}, failure.ArtifactInvalid},
		"many large objects": {func(p *pack) ([]byte, string) {
			for i := range 20 {
				p.object(blobObject, strings.Repeat("a", 60<<10)+fmt.Sprint(i))
			}
			return p.whole(p.object(treeObject, ""))
		}, failure.ArtifactTooLarge},
		"a million objects": {func(p *pack) ([]byte, string) {
			_, is := p.whole(p.object(treeObject, ""))
			return p.headed(1_000_000), is
		}, failure.ArtifactTooLarge},
		"fewer objects than it says": {func(p *pack) ([]byte, string) {
			_, is := p.whole(p.object(treeObject, ""))
			return p.headed(50), is
		}, failure.ArtifactInvalid},
		"deltas of deltas that grow": {func(p *pack) ([]byte, string) {
			text := strings.Repeat("a", 1024)
			base := p.object(blobObject, text)
			for range 12 {
				grown := text + text
				if len(grown) > 0xffff {
					break
				}
				d := delta(len(text), len(grown), 2)
				p.add(refDelta, d, len(d), base)
				base, text = hashOf(blobObject, []byte(grown)), grown
			}
			for range 30 {
				d := delta(len(text), 2*len(text), 2)
				p.add(refDelta, d, len(d), base)
			}
			return p.whole(p.object(treeObject, ""))
		}, failure.ArtifactTooLarge},
		"a delta of gigabytes": {func(p *pack) ([]byte, string) {
			base := p.object(blobObject, "a")
			d := delta(1, 8<<30, 1)
			p.add(refDelta, d, len(d), base)
			return p.whole(p.object(treeObject, ""))
		}, failure.ArtifactTooLarge},
		"a delta of nothing": {func(p *pack) ([]byte, string) {
			d := delta(1, 1, 1)
			p.add(refDelta, d, len(d), strings.Repeat("x", 20))
			return p.whole(p.object(treeObject, ""))
		}, failure.ArtifactInvalid},
		"a file many times": {func(p *pack) ([]byte, string) {
			blob, tree := p.object(blobObject, strings.Repeat("a", 60<<10)), ""
			for i := range 50 {
				tree += entry("100644", fmt.Sprint(100+i), blob)
			}
			return p.whole(p.object(treeObject, tree))
		}, failure.ArtifactTooLarge},
		"directories that double": {func(p *pack) ([]byte, string) {
			tree := p.object(treeObject, "")
			for range 30 {
				tree = p.object(treeObject, entry("40000", "a", tree)+entry("40000", "b", tree))
			}
			return p.whole(tree)
		}, failure.ArtifactTooLarge},
		"a name twice": {func(p *pack) ([]byte, string) {
			blob := p.object(blobObject, "a")
			return p.whole(p.object(treeObject, entry("100644", "a", blob)+entry("100644", "a", blob)))
		}, failure.ArtifactRefused},
		"a file that isn't there": {func(p *pack) ([]byte, string) {
			return p.whole(p.object(treeObject, entry("100644", "a", strings.Repeat("x", 20))))
		}, failure.ArtifactInvalid},
		"a directory that is a file": {func(p *pack) ([]byte, string) {
			return p.whole(p.object(treeObject, entry("40000", "a", p.object(blobObject, "a"))))
		}, failure.ArtifactInvalid},
		"another commit": {func(p *pack) ([]byte, string) {
			data, _ := p.whole(p.object(treeObject, ""))
			return data, strings.Repeat("a", 40)
		}, failure.ArtifactInvalid},
		"half a tree": {func(p *pack) ([]byte, string) { return p.whole(p.object(treeObject, "100644 a\x00x")) }, failure.ArtifactInvalid},
		"no pack":     {func(*pack) ([]byte, string) { return []byte("<html>"), strings.Repeat("a", 40) }, failure.ArtifactInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			data, is := tc.make(&pack{t: t})
			_, err := commit.Open(data, is, limits)
			failed, refused := errors.AsType[*failure.Error](err)
			if (err != nil) != (tc.reason != "") || refused && failed.Reason != tc.reason || err != nil && !refused {
				t.Errorf("got %v, want %q", err, tc.reason)
			}
		})
	}
}

// TestEntriesThatAreUnfit leaves out what no artifact may have, and says so: content beside it can be used.
func TestEntriesThatAreUnfit(t *testing.T) {
	p := &pack{t: t}
	blob, sub := p.object(blobObject, "a"), p.object(treeObject, entry("100644", "x", p.object(blobObject, "a")))
	large := p.object(blobObject, strings.Repeat("a", 65<<10))
	pointer := p.object(blobObject, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
	tree := entry("100644", "good", blob)
	want := 0
	for _, bad := range []string{
		entry("120000", "a-link", blob), entry("160000", "a-submodule", sub), entry("100644", "large", large), entry("100644", "lfs", pointer),
		entry("40000", "..", sub), entry("40000", ".", sub), entry("40000", ".git", sub), entry("40000", ".GIT", sub), entry("40000", ".git. ", sub), entry("40000", "git~1", sub),
		entry("100644", "../x", blob), entry("100644", "a/b", blob), entry("100644", "/etc", blob), entry("100644", "a\nb", blob), entry("100644", "a\\b", blob),
		entry("100644", ".g\u200cit", blob), entry("100644", "e\u0301", blob), entry("100644", "\xff", blob), entry("100644", "", blob), entry("100644", "C:x", blob),
	} {
		tree += bad
		want++
	}
	data, is := p.whole(p.object(treeObject, tree))
	read, err := commit.Open(data, is, limits)
	must.Succeed(t, err)
	if len(read.Files) != 1 || read.Files[0].Name != "good" || len(read.Unfit) != want {
		t.Errorf("got files %q, and %d of %d entries that are unfit: %q", artifact.Names(read.Files), len(read.Unfit), want, read.Unfit)
	}
}

// FuzzFiles takes any pack.
func FuzzFiles(f *testing.F) {
	p := &pack{t: f}
	data, is := p.whole(p.object(treeObject, entry("100644", "a", p.object(blobObject, "a"))))
	f.Add(data, is)
	f.Fuzz(func(_ *testing.T, data []byte, is string) { _, _ = commit.Open(data, is, limits) })
}
