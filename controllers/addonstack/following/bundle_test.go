// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/validity"
	"github.com/cluster-chandler/chandler/internal/bundle"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/worker"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestMain(m *testing.M) {
	worker.RunIfAsked()
	os.Exit(m.Run())
}

// bundled returns what reads bundles, and a stack whose bundle is a Cluster Stack release below a
// directory.
func bundled(t *testing.T) (following.Bundles, *addonsv1.AddonStack, string) {
	t.Helper()
	root := t.TempDir()
	put(t, root, "release/metadata.yaml", "versions: {clusterStack: v1, kubernetes: v1.31.6, components: {clusterAddon: v1}}\n")
	put(t, root, "release/docker-scs-1-31-cluster-addon-v1.tgz", string(targz.Of(t, targz.Entry{Name: "cluster-addon/Chart.yaml", Data: "apiVersion: v2\nname: cluster-addon\nversion: 1.0.0\n"})))
	put(t, root, "release/cluster-addon-values.yaml", "values: |\n  a: 1\n")
	put(t, root, "release/node-images.yaml", "x: 1\n")
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	sources, err := source.New(source.Options{Opener: renderer, ArtifactRoot: root, Clock: clocktesting.NewFakeClock(time.Now())})
	must.Succeed(t, err)
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", UID: "1", Generation: 1}}
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "release"}}
	return following.Bundles{Sources: sources, Events: report.Events{Recorder: events.NewFakeRecorder(100)}}, s, root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	must.Succeed(t, os.MkdirAll(filepath.Dir(name), 0o750))
	must.Succeed(t, os.WriteFile(name, []byte(text), 0o600))
}

// What a release is, and what of it isn't used, stays in the status: the event is gone
// after a while.
func TestNotesOfABundleStay(t *testing.T) {
	r, s, root := bundled(t)
	var revisions []appsv1.ControllerRevision
	expand := func(why, want string) {
		t.Helper()
		e, err := r.Expand(t.Context(), s, nil, revisions)
		if err != nil {
			validity.Report(s, nil, failure.Of(err), r.Events)
		} else {
			validity.Report(s, e, nil, r.Events)
			newest := revisionOf(t, &e.Of(s).Spec)
			newest.OwnerReferences = []metav1.OwnerReference{{UID: s.UID, Controller: ptr.To(true)}}
			stack.SetGeneration(newest, s.Generation)
			revisions = []appsv1.ControllerRevision{*newest}
		}
		if got := conditions.GetMessage(s, addonsv1.ValidCondition); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: Valid says %q, want %q", why, got, want)
		}
	}
	const is = "Cluster Stack release docker-scs-1-31-v1 for Kubernetes v1.31.6"
	expand("a new stack", is)
	expand("nothing changed", is)
	validity.SetValid(s, "")
	expand("it was paused", is)
	put(t, root, "release/docker-scs-1-31-cluster-class-v1.tgz", "x")
	put(t, root, "release/clusteraddon.yaml", "addonStages: {AfterControlPlaneInitialized: [{name: ../x, action: apply}]}")
	expand("the bundle is wrong", "clusteraddon.yaml")
	if conditions.IsTrue(s, addonsv1.ValidCondition) {
		t.Error("it is valid")
	}
	must.Succeed(t, os.Remove(filepath.Join(root, "release/clusteraddon.yaml")))
	must.Succeed(t, os.Remove(filepath.Join(root, "release/docker-scs-1-31-cluster-class-v1.tgz")))
	expand("it is as it was", is)
	put(t, root, "release/metadata.yaml", "versions: {clusterStack: v2, kubernetes: v1.31.7, components: {clusterAddon: v1}}\n")
	expand("it is another one", "docker-scs-1-31-v2")
	s.Generation++
	s.Spec.Source, revisions = nil, nil
	expand("there is none any more", "")
}

// An add-on beside those of the bundle takes newer versions while the bundle is the same.
func TestFollowingBesideABundle(t *testing.T) {
	s := stacks.Following()
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}}
	s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}})
	opened := append([]addonsv1.Addon{}, s.Spec.Addons...)
	opened[1].Chart.Digest = "sha256:cni"
	e := &following.Expansion{Expansion: bundle.Expansion{Addons: opened}, Digest: "sha256:bundle"}
	pins := stack.Pins{"web": {Version: "1.4.1", Digest: "sha256:1"}}
	kept := pins.Into(&e.Of(s).Spec)
	data, err := json.Marshal(kept)
	must.Succeed(t, err)
	revision := stack.Snapshot(s, data, 1)

	addons, complete := following.KeptAddons(s.Spec.Addons, kept.Addons)
	again := &following.Expansion{Expansion: bundle.Expansion{Addons: addons}, Digest: "sha256:bundle"}
	if !complete || !stack.IsOf(revision, again.Of(s), pins, nil) {
		t.Errorf("%+v aren't those of the revision", addons)
	}
	if stack.IsOf(revision, again.Of(s), stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:2"}}, nil) {
		t.Error("a newer version makes no difference")
	}
	if s.Spec.Addons[1].Chart.Digest != "" {
		t.Error("the spec itself was changed")
	}
	if _, complete := following.KeptAddons(s.Spec.Addons, kept.Addons[:1]); complete {
		t.Error("the digest of a chart that the revision doesn't have")
	}
}

// A bundle is read once more for another spec, and asked for whatever digest a spec names.
func TestBundleOfAnotherSpec(t *testing.T) {
	r, s, _ := bundled(t)
	e, err := r.Expand(t.Context(), s, nil, nil)
	must.Succeed(t, err)
	kept := e.Of(s).Spec.DeepCopy()
	kept.Addons = append(kept.Addons, addonsv1.Addon{Name: "of the previous spec"})
	revision := revisionOf(t, kept)
	for generation, addons := range map[int64]int{1: len(kept.Addons), 2: len(e.Addons)} {
		stack.SetGeneration(revision, 1)
		s.Generation = generation
		again, err := r.Expand(t.Context(), s, nil, []appsv1.ControllerRevision{*revision})
		must.Succeed(t, err)
		if len(again.Addons) != addons {
			t.Errorf("of generation %d: %d add-ons, want %d", generation, len(again.Addons), addons)
		}
	}
	from := s.Spec.Source.DeepCopy()
	from.Digest = "sha256:" + strings.Repeat("0", 64)
	if digest, err := r.Digest(t.Context(), s.Namespace, from, &addonsv1.AddonStackSpec{}); err == nil {
		t.Errorf("the bundle has digest %s", digest)
	}
}
