// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestManifestsThatGrow(t *testing.T) {
	yamlbombs.AreRefused(t, func(text string) error {
		_, err := ParseManifest("---\n" + object + "---\n" + object + text)
		if err != nil && !strings.Contains(err.Error(), "document 2") {
			return fmt.Errorf("%w, but which document?", err)
		}
		return err
	})
}

// What one document may have, many may not have together.
func TestManifestsThatGrowInManyDocuments(t *testing.T) {
	long.InCI(t)
	x := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct{ document, says string }{
		"values":  {object + "data: [" + strings.Repeat("{},", 290_000) + "]\n", "values in"},
		"bytes":   {object + "data: [" + strings.Repeat("<", 2<<20) + "]\n", "bytes, at most"},
		"aliases": {object + "x: &x " + x + "\ndata: [" + strings.Repeat("*x,", 3000) + "]\n", "bytes, at most"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := strings.Repeat("---\n"+tc.document, 10)
			var err error
			took := cost.Of(func() { _, err = ParseManifest(manifest) })
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			took.Expect(t, 5*time.Second, 400<<20)
			t.Logf("%s, %d MiB: %v", took.Work, took.Held>>20, err)
		})
	}
}

// A record is a Secret of the workload cluster. Whoever may write those can't have the
// manager take much memory.
func TestHostileRecords(t *testing.T) {
	long.InCI(t)
	packed := func(plain string) []byte {
		t.Helper()
		data, err := deflate([]byte(plain))
		must.Succeed(t, err)
		return data
	}
	withSize := func(data []byte, says uint32) []byte {
		return binary.LittleEndian.AppendUint32(data[:len(data)-4:len(data)-4], says)
	}
	spaces := strings.Repeat(" ", maxInflated)
	twice := append(packed(spaces), packed(spaces)...) // gzip continues with what follows
	for name, tc := range map[string]struct {
		data []byte
		says string
	}{
		"much of nothing":             {twice, "unpacks to more than the 67108864 bytes that it says"},
		"the same, with a wrong size": {withSize(twice, 1), "unpacks to more than the 1 bytes that it says"},
		"a size that can't be":        {withSize(packed("{}"), 1<<20), "unpacks to more than 64 MiB, or isn't whole"},
		"a list of many maps":         {packed(`{"config":{"a":[` + strings.Repeat("{},", maxInflated/3-20) + `{}]}}`), "more than 500000 values"},
		"a list of many structs":      {packed(`{"inventory":[` + strings.Repeat("{},", maxInflated/3-20) + `{}]}`), "more than 500000 values"},
		"much nesting":                {packed(strings.Repeat("[", 1<<20)), "more than 500000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { err = (&reader{}).unpackJSON(tc.data, maxFields, &State{}) })
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			took.Expect(t, 2*time.Second, 200<<20)
			t.Logf("%d bytes: %s, %d MiB: %v", len(tc.data), took.Work, took.Held>>20, err)
		})
	}
	t.Run("as many values as there may be", func(t *testing.T) {
		data := packed(`{"inventory":[` + strings.Repeat("{},", maxFields-10) + `{}]}`)
		took := cost.Of(func() {
			if err := (&reader{}).unpackJSON(data, maxFields, &State{}); err != nil {
				t.Error(err)
			}
		})
		took.Expect(t, 5*time.Second, 400<<20)
		t.Logf("%d bytes: %s, %d MiB", len(data), took.Work, took.Held>>20)
	})
}

// What couldn't be read again isn't written.
func TestRecordsThatWouldntBeRead(t *testing.T) {
	r := &Record{
		Summary: Summary{Release: Release{Namespace: "a", Name: "b"}, Revision: 1},
		Helm:    &helmrelease.Release{Manifest: strings.Repeat("a", maxInflated)},
		State:   &State{Format: 1},
	}
	_, _, err := (&Store{Clock: clock.RealClock{}}).secretOf(r)
	if fault, ok := errors.AsType[*Fault](err); !ok || fault.Kind != TooLarge {
		t.Errorf("got %v", err)
	}
}

// Four clusters with a chart of 13 MiB would otherwise take the manager 115 MiB each for a moment.
func TestLargeRecordIsSealedAndPackedInLittleMemory(t *testing.T) {
	manifest := strings.Repeat("data: {x: \""+strings.Repeat("x", 2000)+"<&>\u2028\xff\"}\r\n", 6000) + "the end"
	r := &Record{Helm: &helmrelease.Release{Name: "web", Manifest: manifest}, State: &State{}}
	var packed []byte
	var err error
	took := cost.Quick(func() {
		r.Seal("")
		packed, err = (&writer{}).encodeRelease(r.Helm)
	})
	if err != nil || r.Helm.Manifest != manifest {
		t.Fatalf("%v, or the manifest was changed", err)
	}
	if most := 2 * uint64(len(manifest)); took.Allocated > most && !cost.RaceDetector() {
		t.Errorf("%d KiB were allocated for a manifest of %d", took.Allocated>>10, most>>10)
	}

	compressed, err := base64.StdEncoding.DecodeString(string(packed))
	must.Succeed(t, err)
	plain, err := (&reader{}).inflate(compressed)
	must.Succeed(t, err)
	want, err := json.Marshal(r.Helm) // as Helm writes it
	must.Succeed(t, err)
	if !bytes.Equal(plain, want) {
		t.Error("the release isn't encoded as Helm does")
	}
}

// TestRecordLeavesRoomForItsEnd makes records of sizes around the limit of one Secret. Each
// that can be created can be completed: with a UID for each object, and a long description.
func TestRecordLeavesRoomForItsEnd(t *testing.T) {
	noise := make([]byte, 800_000)
	_, _ = rand.Read(noise)
	text := base64.StdEncoding.EncodeToString(noise)
	store := &Store{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Release: Release{Namespace: "ns", Name: "demo"}}
	fits := map[bool]int{}
	for size := 930_000; size <= 960_000; size += 3_000 {
		r := &Record{Summary: Summary{Release: store.Release, Revision: 1}, Helm: &helmrelease.Release{
			Name: "demo", Info: &helmrelease.Info{}, Manifest: text[:size],
		}, State: &State{Format: currentFormat}}
		for i := range 1000 {
			r.State.Inventory = append(r.State.Inventory, Entry{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("map-%d", i)})
		}
		_, err := store.encode(t.Context(), r)
		fits[err == nil]++
		if fault, ok := errors.AsType[*Fault](err); ok && fault.Kind == TooLarge {
			continue
		} else if err != nil {
			t.Fatalf("size %d: creating it: %v", size, err)
		}
		r.UID = "1"
		for i := range r.State.Inventory {
			r.State.Inventory[i].UID = uuid.NewUUID()
		}
		description := make([]byte, 768)
		_, _ = rand.Read(description)
		r.Helm.Info.Description = base64.StdEncoding.EncodeToString(description)
		if _, err := store.encode(t.Context(), r); err != nil {
			t.Errorf("size %d: completing it: %v", size, err)
		}
	}
	if fits[true] == 0 || fits[false] == 0 {
		t.Errorf("the sizes are on one side of the limit: %v", fits)
	}
}
