// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

func newStack() *addonsv1.AddonStack {
	return &addonsv1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "platform", UID: "1", Generation: 3, Labels: map[string]string{clusterv1.WatchLabel: "a"},
		},
		Spec: addonsv1.AddonStackSpec{
			ClassNames: []string{"v1"},
			Addons: []addonsv1.Addon{{
				Name: "web", Chart: addonsv1.ChartSource{Path: "web"}, ValuesTemplate: "a: 1",
				Values: &apiextensionsv1.JSON{Raw: []byte(`{"b": "<é>", "a": 1.50, "none": null}`)},
			}},
		},
	}
}

// served is the content of a stack as an API server serves it.
func served(t *testing.T, s *addonsv1.AddonStack, change func(spec map[string]any)) []byte {
	t.Helper()
	content, err := stack.Content(servedObject(t, s, change), &s.Spec, stack.Pins{}.Into(&s.Spec), nil)
	must.Succeed(t, err)
	return content
}

// servedObject is the stack as an API server serves it, perhaps with more than this
// program knows.
func servedObject(t *testing.T, s *addonsv1.AddonStack, change func(spec map[string]any)) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(s)
	must.Succeed(t, err)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(append([]byte(`{"apiVersion":"addons.cluster.x-k8s.io/v1beta1","kind":"AddonStack",`), data[1:]...)); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(u.Object["spec"].(map[string]any))
	}
	return u
}

func TestSnapshotKeepsTheSpec(t *testing.T) {
	s := newStack()
	revision := stack.Snapshot(s, served(t, s, nil), 7)
	spec, err := stack.SpecOf(revision)
	must.Succeed(t, err)
	if diff := cmp.Diff(s.Spec.ClassNames, spec.ClassNames); diff != "" || spec.Addons[0].ValuesTemplate != "a: 1" {
		t.Errorf("the spec came back otherwise:\n%s", diff)
	}
	if revision.Labels[clusterv1.WatchLabel] != "a" || stack.Generation(revision) != 3 || revision.Revision != 7 {
		t.Errorf("labels %v, generation %d, revision %d", revision.Labels, stack.Generation(revision), revision.Revision)
	}
	if !stack.IsOf(revision, s, nil, nil) {
		t.Error("a revision isn't of the stack that it was made from")
	}
	if again := stack.Snapshot(s, served(t, s.DeepCopy(), nil), 8); again.Name != revision.Name {
		t.Errorf("an equal spec got another name: %s, %s", revision.Name, again.Name)
	}
	other := s.DeepCopy()
	other.Spec.Addons[0].Name = "site"
	if stack.Snapshot(other, served(t, other, nil), 8).Name == revision.Name {
		t.Error("another spec got the same name")
	}
	if stack.IsOf(revision, other, nil, nil) {
		t.Error("a spec that changed without a new generation, as by another version of the API, goes unnoticed")
	}
	other = s.DeepCopy()
	other.Generation++
	if stack.IsOf(revision, other, nil, nil) {
		t.Error("a new generation goes unnoticed: it may have changed what this program doesn't know")
	}
}

// What this program doesn't know is kept, and makes a difference.
func TestSnapshotKeepsUnknownFields(t *testing.T) {
	s := newStack()
	newer := func(spec map[string]any) { spec["addons"].([]any)[0].(map[string]any)["tomorrow"] = "yes" }
	revision := stack.Snapshot(s, served(t, s, newer), 1)
	if !bytes.Contains(revision.Data.Raw, []byte("tomorrow")) || revision.Name == stack.Snapshot(s, served(t, s, nil), 1).Name {
		t.Errorf("revision %s has lost a field: %s", revision.Name, revision.Data.Raw)
	}
	if !stack.IsOf(revision, s, nil, nil) {
		t.Error("a field that this program doesn't know makes it look again and again")
	}
	if _, unknown, err := stack.Read(revision); err != nil || !slices.Equal(unknown, []string{"spec.addons[0].tomorrow"}) {
		t.Errorf("Read() tells of %q, %v", unknown, err)
	}
	if _, unknown, err := stack.Read(stack.Snapshot(s, served(t, s, nil), 1)); err != nil || len(unknown) > 0 {
		t.Errorf("Read() tells of %q, %v, where all is known", unknown, err)
	}
}

// The API server may write JSON in another way than it was sent.
func TestKeepsComparesContent(t *testing.T) {
	s := newStack()
	content := served(t, s, nil)
	revision := stack.Snapshot(s, content, 1)
	var indented bytes.Buffer
	must.Succeed(t, json.Indent(&indented, content, "", "  "))
	revision.Data.Raw = bytes.ReplaceAll(indented.Bytes(), []byte(`\u003c`), []byte("<"))
	if !stack.Keeps(revision, content) || !stack.IsOf(revision, s, nil, nil) {
		t.Errorf("%s isn't taken for %s", revision.Data.Raw, content)
	}
	s.Spec.Addons[0].Name = "site"
	if stack.Keeps(revision, served(t, s, nil)) {
		t.Error("another content is taken for the same")
	}
}

// TestWritten edits a stack that follows versions, and whose newest revision pins inputs.
func TestWritten(t *testing.T) {
	kept := newStack()
	kept.Spec.Rollout = &addonsv1.Rollout{}
	kept.Spec.Addons = append(kept.Spec.Addons, addonsv1.Addon{
		Name: "cni", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/cni"}},
		ValuesFrom: []addonsv1.ValuesReference{{Kind: "Secret", Name: "cni"}},
	})
	inputs := stack.Inputs{"Secret/cni/values.yaml": "sha256:a"}
	content, err := stack.Content(servedObject(t, kept, nil), &kept.Spec, stack.Pins{"cni": {Version: "1.4.2", Digest: "sha256:b"}}.Into(&kept.Spec), inputs)
	must.Succeed(t, err)
	revisions := []appsv1.ControllerRevision{*stack.Snapshot(kept, content, 5)}
	newest := &revisions[0]
	bundle := &addonsv1.BundleSource{ClusterStack: "docker-scs-1-31"}
	for name, c := range map[string]struct {
		edit  func(*addonsv1.AddonStack)
		lines []string // differences of the newest revision from the spec
	}{
		"nothing":              {edit: func(s *addonsv1.AddonStack) { s.Generation-- }},
		"metadata":             {edit: func(s *addonsv1.AddonStack) { s.Generation--; s.Labels = map[string]string{"x": "y"} }},
		"how it is rolled out": {edit: func(s *addonsv1.AddonStack) { s.Spec.Rollout = nil }},
		"how it is updated":    {edit: func(s *addonsv1.AddonStack) { s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(true)} }},
		"what counts as written": {edit: func(s *addonsv1.AddonStack) {
			s.Spec.DeletionPolicy, s.Spec.RemovalLimit = addonsv1.DeletionPolicyOrphan, ptr.To(intstr.FromInt32(3))
			s.Spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"old"}}
		}},
		"a range with the same": {edit: func(s *addonsv1.AddonStack) { s.Spec.Addons[1].Chart.Version = "1.x" }},
		"a range without it": {func(s *addonsv1.AddonStack) { s.Spec.Addons[1].Chart.Version = ">=9" },
			[]string{`addons[cni].chart.version: ">=9" -> "1.4.2"`, `addons[cni].chart.oci.digest: "sha256:b"`}},
		"values":                   {func(s *addonsv1.AddonStack) { s.Spec.Addons[0].ValuesTemplate = "a: 2" }, []string{`addons[web].valuesTemplate: "a: 2" -> "a: 1"`}},
		"what is taken up at once": {edit: func(s *addonsv1.AddonStack) { s.Generation--; s.Spec.Source = bundle }},
		"a bundle":                 {func(s *addonsv1.AddonStack) { s.Spec.Source = bundle }, []string{`source: {"clusterStack":"docker-scs-1-31"} -> removed`}},
	} {
		s := kept.DeepCopy()
		s.Generation++
		c.edit(s)
		written, err := stack.Written(servedObject(t, s, nil), s, revisions)
		must.Succeed(t, err)
		if (written == newest) != (c.lines == nil) {
			t.Errorf("%s: got revision %q", name, written.Name)
			continue
		}
		if lines, err := stack.Differences(written, newest); err != nil || !cmp.Equal(c.lines, lines, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)) {
			t.Errorf("%s: %v, %q", name, err, lines)
		}
	}
}

// A revision that an earlier program made has policies in its content. The stack's spec didn't change, so it is the stack's
// still, and nobody reads them there.
func TestRevisionOfEarlierProgram(t *testing.T) {
	s := newStack()
	s.Spec.DeletionPolicy, s.Spec.RemovalLimit = addonsv1.DeletionPolicyOrphan, ptr.To(intstr.FromString("20%"))
	s.Spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"old"}}
	kept, err := json.Marshal(s.Spec)
	must.Succeed(t, err)
	earlier := stack.Snapshot(s, kept, 1)
	content, err := stack.Content(servedObject(t, s, nil), &s.Spec, stack.Pins{}.Into(&s.Spec), nil)
	must.Succeed(t, err)
	for _, field := range stack.Policies {
		if bytes.Contains(content, []byte(field)) {
			t.Errorf("%s is content: %s", field, content)
		}
	}
	if !stack.IsOf(earlier, s, nil, nil) || !stack.Keeps(earlier, content) {
		t.Error("a new revision would be made, and rolled out, of a spec that didn't change")
	}
	if is, err := stack.SpecOf(earlier); err != nil || is.DeletionPolicy != "" || is.RemovalLimit != nil || is.AllowedRemovals != nil {
		t.Errorf("%v, %+v", err, is)
	}
	if lines, err := stack.Differences(earlier, stack.Snapshot(s, content, 2)); err != nil || len(lines) > 0 {
		t.Errorf("%v, %q", err, lines)
	}
}

func TestSyncLabel(t *testing.T) {
	s := newStack()
	revision := stack.Snapshot(s, []byte("{}"), 1)
	revision.Labels["theirs"] = "stays"
	if stack.SyncLabel(revision, s) {
		t.Error("a label that is right was changed")
	}
	s.Labels[clusterv1.WatchLabel] = "b"
	if !stack.SyncLabel(revision, s) || revision.Labels[clusterv1.WatchLabel] != "b" {
		t.Errorf("labels: %v", revision.Labels)
	}
	s.Labels = nil
	changed := stack.SyncLabel(revision, s)
	if _, has := revision.Labels[clusterv1.WatchLabel]; !changed || has {
		t.Errorf("labels: %v", revision.Labels)
	}
	if revision.Labels["theirs"] != "stays" {
		t.Error("somebody else's label is gone")
	}
}

// The generation decides which revision is the newest, whatever number a writer
// gave it that lagged behind.
func TestOwnRevisionsComeNewestFirst(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "platform", UID: "1"}}
	owned := func(name string, by types.UID, generation, number int64) appsv1.ControllerRevision {
		r := appsv1.ControllerRevision{Revision: number, ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{{UID: by, Controller: ptr.To(true)}},
		}}
		stack.SetGeneration(&r, generation)
		return r
	}
	own := stack.OwnRevisions(s, []appsv1.ControllerRevision{
		owned("old", "1", 1, 1), owned("foreign", "2", 9, 9), owned("late", "1", 4, 5), owned("new", "1", 5, 5), owned("older", "1", 3, 4),
	})
	var names []string
	for _, r := range own {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"new", "late", "older", "old"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
