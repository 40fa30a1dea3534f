// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestRecordLeavesRoomForItsEnd makes records of sizes around the limit of one Secret. Each
// that can be created can be completed: with a UID for each object, and a long description.
func TestRecordLeavesRoomForItsEnd(t *testing.T) {
	noise := make([]byte, 800_000)
	_, _ = rand.Read(noise)
	text := base64.StdEncoding.EncodeToString(noise)
	store := &Store{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Release: Release{Namespace: "ns", Name: "demo"}}
	whole := map[bool]int{}
	for size := 930_000; size <= 960_000; size += 3_000 {
		r := &Record{Summary: Summary{Release: store.Release, Revision: 1}, Helm: &helmrelease.Release{
			Name: "demo", Info: &helmrelease.Info{}, Manifest: text[:size],
		}, State: &State{Format: currentFormat}}
		for i := range 1000 {
			r.State.Inventory = append(r.State.Inventory, Entry{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("map-%d", i)})
		}
		_, parts, err := store.encode(r)
		if err != nil {
			t.Fatalf("size %d: creating it: %v", size, err)
		}
		whole[len(parts) == 0]++
		r.UID = "1"
		for i := range r.State.Inventory {
			r.State.Inventory[i].UID = uuid.NewUUID()
		}
		description := make([]byte, 768)
		_, _ = rand.Read(description)
		r.Helm.Info.Description = base64.StdEncoding.EncodeToString(description)
		if _, _, err := store.encode(r); err != nil {
			t.Errorf("size %d, %d parts: completing it: %v", size, len(parts), err)
		}
	}
	if whole[true] == 0 || whole[false] == 0 {
		t.Errorf("the sizes are on one side of the limit: %v", whole)
	}
}
