// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/targz"
)

// kinds that content is unpacked as.
var kinds = []artifact.Kind{artifact.KindChart, artifact.KindKustomization, artifact.KindManifests, artifact.KindBundle}

// FuzzArchive looks for an archive that makes the reader panic, or that it
// accepts although it breaks what an artifact promises, of each kind.
//
//	go test -fuzz FuzzArchive ./internal/artifact
func FuzzArchive(f *testing.F) {
	add := func(archive []byte, compressed bool) {
		for kind := range kinds {
			f.Add(archive, compressed, uint8(kind))
		}
	}
	add(targz.Chart(f, targz.Entry{Name: "demo/values.yaml", Data: "a: 1"}), true)
	add(hostile.Nest(f, targz.Chart(f), 2), true)
	add(targz.Tar(f, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML}), false)
	corpus := hostile.Archives()
	for _, name := range slices.Sorted(maps.Keys(corpus)) {
		if corpus[name].Reason == failure.ArtifactTooLarge { // slow to build, and large seeds slow the fuzzer down
			continue
		}
		if archive := corpus[name].Make(f); len(archive) < 4<<10 {
			add(archive, true)
		}
	}
	limits := artifact.Limits{ArchiveBytes: 64 << 10, TotalBytes: 256 << 10, FileBytes: 64 << 10, Entries: 100}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool, index uint8) {
		kind := kinds[int(index)%len(kinds)]
		if !compressed && kind != artifact.KindManifests { // the fuzzer finds its way through tar far better than through gzip
			data = targz.Gzip(t, bytes.NewReader(data))
		}
		files, err := artifact.Content{Kind: kind, Archive: data}.Unpack(limits)
		if err != nil {
			var refusal *failure.Error
			if !errors.As(err, &refusal) || refusal.Reason == "" || strings.ContainsFunc(err.Error(), unprintable) {
				t.Fatalf("the error isn't fit for a condition: %q", err)
			}
			return
		}
		expectPromises(t, kind, files, limits)
		again, err := artifact.Content{Kind: kind, Archive: data}.Unpack(limits)
		if err != nil || !reflect.DeepEqual(files, again) {
			t.Errorf("the second time it differs: %v", err)
		}
	})
}

// expectPromises expects what every artifact promises.
func expectPromises(t *testing.T, kind artifact.Kind, files []artifact.File, limits artifact.Limits) {
	t.Helper()
	var total int64
	for i, file := range files {
		if err := artifact.CheckName(file.Name); err != nil {
			t.Errorf("accepted a bad name: %v", err)
		}
		if i > 0 && files[i-1].Name >= file.Name {
			t.Errorf("%q comes after %q", file.Name, files[i-1].Name)
		}
		total += int64(len(file.Data))
	}
	if total > limits.TotalBytes {
		t.Errorf("accepted %d bytes", total)
	}
	if !kind.Verbatim() && !slices.ContainsFunc(files, func(file artifact.File) bool { return file.Name == artifact.ChartFile }) {
		t.Error("accepted an archive without Chart.yaml")
	}
}
