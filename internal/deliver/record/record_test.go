// SPDX-License-Identifier: Apache-2.0

package record

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

func TestSummaryRoundTrip(t *testing.T) {
	r := &Record{Summary: Summary{
		Release: Release{Namespace: "kube-system", Name: "cilium"}, Revision: 7, Status: "deployed",
		Digest: "sha256:1", Owner: "fleet/cluster-a", Chart: "cilium", Version: "1.2.3", AppVersion: "1",
		FactsUsed: `{"kubeVersion":"v1.36.3"}`, Objects: 12, Kinds: "v1/Pod",
		Terms: Terms{
			Stack: strings.Repeat("s", 200), Spec: "abc", DependsOn: []string{"a", "b"}, DeletionPolicy: addonsv1.DeletionPolicyOrphan,
		},
	}, WatchFilter: "blue"}
	m := r.metadata(r.ModifiedAt)
	if len(m.Labels["addons.cluster.x-k8s.io/stack"]) > 63 {
		t.Error("a label's value is too long")
	}
	got, ok := SummaryOf(&m)
	if !ok {
		t.Fatal("it isn't a record")
	}
	want := r.Summary
	want.Owned, want.Complete, want.SecretName = true, true, "sh.helm.release.v1.cilium.v7"
	got.ModifiedAt, want.ModifiedAt = time.Time{}, time.Time{}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !got.Settled("sha256:1") || got.Settled("sha256:2") {
		t.Error("Settled is wrong")
	}

	// Helm drops annotations and keeps labels.
	m.Annotations = nil
	got, _ = SummaryOf(&m)
	if got.Complete || !got.Owned || got.Owner != "fleet/cluster-a" || got.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		t.Errorf("after Helm: %+v", got)
	}
}

func TestSummarizeTakesTheNewestOfEachRelease(t *testing.T) {
	secret := func(name string, revision int) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: SecretName(name, revision),
			Labels: map[string]string{"name": name, "owner": "helm", "version": strconv.Itoa(revision), "status": "deployed"},
		}}
	}
	other := secret("x", 99)
	other.Name = "something-else"
	part := secret("x", 12)
	part.Labels["owner"] = "chandler"
	got := Summarize([]metav1.PartialObjectMetadata{secret("x", 9), secret("x", 11), secret("x", 10), secret("y", 1), other, part})
	if len(got) != 2 || got[Release{"a", "x"}].Revision != 11 || got[Release{"a", "y"}].Revision != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestInventory(t *testing.T) {
	entry := func(version, name string) Entry {
		return Entry{Group: "apps", Version: version, Kind: "Deployment", Namespace: "a", Name: name}
	}
	owned := entry("v1beta1", "x")
	owned.UID = "1"
	union := Union([]Entry{owned, entry("v1", "y")}, []Entry{entry("v1", "x"), entry("v1", "z")})
	want := entry("v1", "x")
	want.UID = "1"
	if d := cmp.Diff([]Entry{want, entry("v1", "y"), entry("v1", "z")}, union); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Entry{entry("v1", "y"), entry("v1", "z")}, Minus(union, []Entry{entry("v2", "x")})); d != "" {
		t.Error("another version is the same object:", d)
	}
	if kinds := Kinds(append(union, Entry{Version: "v1", Kind: "Pod"})); kinds != "apps/v1/Deployment,v1/Pod" {
		t.Error(kinds)
	}
}

func TestManifestRoundTrip(t *testing.T) {
	text := "# Source: a\n---\n\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {n: '1'}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\nspec: {replicas: 3000000000}\n"
	objects, err := ParseManifest(text)
	if err != nil || len(objects) != 3 {
		t.Fatalf("%v, %v", objects, err)
	}
	if n := objects[2].Object["spec"].(map[string]any)["replicas"]; n != int64(3000000000) {
		t.Errorf("replicas is a %T", n)
	}
	again, err := FormatManifest(objects)
	must.Succeed(t, err)
	parsed, err := ParseManifest(again)
	if err != nil || !reflect.DeepEqual(objects, parsed) {
		t.Errorf("%v, %v", parsed, err)
	}
	if _, err := ParseManifest("a: [1"); err == nil {
		t.Error("broken YAML is accepted")
	}
}

func TestSurplus(t *testing.T) {
	var records []Summary
	for i := 8; i > 0; i-- {
		records = append(records, Summary{Revision: i, Status: "failed", SecretName: strconv.Itoa(i)})
	}
	records[6].Status = "deployed" // revision 2
	if d := cmp.Diff([]string{"3", "1"}, Surplus(records, 5)); d != "" {
		t.Error(d)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("H4sIAAAAAAAA"))
	f.Add([]byte(""))
	for _, text := range yamlbombs.All() {
		f.Add([]byte(text))
	}
	packed, err := deflate([]byte(`{"hooks":[` + strings.Repeat("{},", 1<<20) + `{}]}`))
	must.Succeed(f, err)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated := yamlbombs.Allocated(func() {
			if r, err := (&reader{}).decodeRelease(data); err == nil && r.Info == nil {
				t.Error("no info")
			}
			var s State
			_ = (&reader{}).unpackJSON(data, maxFields, &s)
			_, _ = ParseManifest(string(data))
		})
		if allocated > 1<<30 { // in all, garbage included
			t.Errorf("%d bytes took %d MiB", len(data), allocated>>20)
		}
	})
}
