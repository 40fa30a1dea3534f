// SPDX-License-Identifier: Apache-2.0

package sources_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
	"github.com/cluster-chandler/chandler/test/stacks"
)

func TestSourcesOf(t *testing.T) {
	const down = "addons[cni].chart.oci: oci://r.example/cni:1.0.0: r.example: connection refused"
	unread := addonsv1.AddonStatus{Reason: failure.SourceUnavailable, Message: down}
	other := addonsv1.AddonStatus{Reason: failure.SourceUnauthorized, Message: "a"}
	slow := addonsv1.AddonStatus{Reason: failure.ArtifactPending, Message: "slow"}
	given := addonsv1.AddonStatus{Phase: addonsv1.AddonReady, RecordDigest: "sha256:1"}
	givenAndFailed := addonsv1.AddonStatus{Phase: addonsv1.AddonFailed, Reason: "ObjectRejected", RecordDigest: "sha256:1"}
	unfit := addonsv1.AddonStatus{Phase: addonsv1.AddonFailed, Reason: job.ReasonManifestInvalid, Message: "no object"}
	broken := addonsv1.AddonStatus{Phase: addonsv1.AddonFailed, Reason: job.ReasonTemplateFailed, Message: "templates/a.yaml: no"}
	novalues := addonsv1.AddonStatus{Phase: addonsv1.AddonFailed, Reason: job.ReasonValuesTemplateFailed, Message: "addons[cni].valuesTemplate: no"}
	waits := addonsv1.AddonStatus{Phase: addonsv1.AddonPending, Reason: "WaitingForDependency"}
	for name, tc := range map[string]struct {
		clusters []addonsv1.AddonStatus
		look     *failure.Error
		want     string
	}{
		"no cluster":               {nil, nil, "Unknown NotAsked: No cluster has asked for it yet"},
		"one waits for others":     {[]addonsv1.AddonStatus{waits}, nil, "Unknown NotAsked: No cluster has asked for it yet"},
		"it makes no objects":      {[]addonsv1.AddonStatus{unfit}, nil, "True Available: "},
		"its template fails":       {[]addonsv1.AddonStatus{broken}, nil, "True Available: "},
		"that of the values fails": {[]addonsv1.AddonStatus{novalues}, nil, "Unknown NotAsked: No cluster has asked for it yet"},
		"one has it":               {[]addonsv1.AddonStatus{waits, given}, nil, "True Available: "},
		"it can't be installed":    {[]addonsv1.AddonStatus{givenAndFailed}, nil, "True Available: "},
		"one doesn't get it":       {[]addonsv1.AddonStatus{given, unread, given}, nil, "False SourceUnavailable: " + down},
		"one is at it":             {[]addonsv1.AddonStatus{given, slow}, nil, "Unknown ArtifactPending: slow"},
		"different failures":       {[]addonsv1.AddonStatus{unread, other}, nil, "False SourceUnauthorized: a"},
		"the other way round":      {[]addonsv1.AddonStatus{other, slow, unread}, nil, "False SourceUnauthorized: a"},
		"the last look failed":     {[]addonsv1.AddonStatus{given}, &failure.Error{Reason: failure.ArtifactNotFound, Err: errors.New("gone")}, "False ArtifactNotFound: Looking for newer versions: Add-on cni: gone"},
		"both, the look counts":    {[]addonsv1.AddonStatus{unread}, &failure.Error{Reason: failure.ArtifactNotFound, Err: errors.New("gone")}, "False ArtifactNotFound: Looking for newer versions: Add-on cni: gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "base", Namespace: "team", Generation: 3}}
			s.Status.LatestRevision = "base-1"
			spec := &addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "cni", Chart: addonsv1.ChartSource{
				OCI: &addonsv1.OCISource{URL: "oci://r.example/cni"}, Version: "1.0.0",
			}}}}
			f := &following.Resolution{}
			if tc.look != nil {
				f.Followed = failed(tc.look).Followed
			}
			got := sources.Of(s, spec, clustersWith("cni", tc.clusters), f)
			if len(got) != 1 || got[0].Addon != "cni" || got[0].Address != "oci://r.example/cni:1.0.0" || len(got[0].Conditions) != 1 {
				t.Fatalf("got %+v", got)
			}
			c := got[0].Conditions[0]
			if is := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); is != tc.want || c.Type != "Available" || c.ObservedGeneration != 3 {
				t.Errorf("got  %+v\nwant %s", c, tc.want)
			}

			// What is unchanged is the same, with its time.
			long := metav1.NewTime(time.Unix(1, 0))
			got[0].Conditions[0].LastTransitionTime = long
			s.Status.Sources = got
			if again := sources.Of(s, spec, clustersWith("cni", tc.clusters), f); !again[0].Conditions[0].LastTransitionTime.Equal(&long) {
				t.Error("the condition that hasn't changed has another time")
			}
		})
	}
}

func TestSourcesOfOldRevisionsDontCount(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "base", Namespace: "team"}}
	s.Status.LatestRevision = "base-2"
	spec := &addonsv1.AddonStackSpec{
		Source: &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "v2"}},
		Addons: []addonsv1.Addon{{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}}},
	}
	clusters := clustersWith("cni", []addonsv1.AddonStatus{{Reason: failure.ArtifactNotFound, Message: "of base-1"}})
	got := sources.Of(s, spec, clusters, nil)
	if len(got) != 2 || got[0].Addon != addonsv1.FollowedSource || got[0].Conditions[0].Status != metav1.ConditionTrue {
		t.Fatalf("got %+v, want the bundle first, which is available", got)
	}
	if c := got[1].Conditions[0]; c.Reason != addonsv1.SourceNotAskedReason {
		t.Errorf("got %+v: a cluster at a previous revision has nothing to say of this one", c)
	}
	if got[1].Address != `"cni" of the bundle` {
		t.Errorf("address is %s", got[1].Address)
	}
}

// failed returns the resolution of add-on cni, which has version 1.4.2, and whose source couldn't be polled.
func failed(why *failure.Error) *following.Resolution {
	s := stacks.Following()
	s.Spec.Addons[0].Name = "cni"
	return following.Resolve(s, stack.Followers(&s.Spec), stack.Pins{"cni": {Version: "1.4.2"}}, &following.Poll{Results: map[string]following.Found{"cni": {Err: why}}})
}

// TestSourcesStandWhileAnotherStackIsChanged has a cluster that hasn't seen yet what it is to run now. What it says of a stack whose
// revision stays the same is as before.
func TestSourcesStandWhileAnotherStackIsChanged(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "base", Namespace: "team"}}
	s.Status.LatestRevision = "base-1"
	spec := &addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}}}}
	for seen, want := range map[string]string{"base-1": addonsv1.SourceAvailableReason, "base-0": addonsv1.SourceNotAskedReason} {
		clusters := clustersWith("cni", []addonsv1.AddonStatus{{RecordDigest: "sha256:1"}})
		clusters[0].Generation = 2
		clusters[0].Status.ObservedGeneration = 1
		clusters[0].Status.Stacks = []addonsv1.StackStatus{{Name: "other", Revision: "base-1"}, {Name: "base", Revision: seen}}
		if c := sources.Of(s, spec, clusters, nil)[0].Conditions[0]; c.Reason != want {
			t.Errorf("the cluster was brought to %s: %+v", seen, c)
		}
	}
}

// clustersWith are clusters of stack base at revision base-1, whose add-on of the name
// has these statuses.
func clustersWith(addon string, statuses []addonsv1.AddonStatus) []standing.Cluster {
	var clusters []standing.Cluster
	for _, status := range statuses {
		status.Stack, status.Name = "base", addon
		ca := &addonsv1.ClusterAddon{}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "base", Revision: "base-1"}}
		ca.Status.Addons = []addonsv1.AddonStatus{
			{Stack: "base", Name: "other", Reason: failure.ArtifactRefused, Message: "0"},
			{Stack: "else", Name: addon, Reason: failure.ArtifactRefused, Message: "0"},
			status,
		}
		clusters = append(clusters, standing.Cluster{ClusterAddon: ca})
	}
	return clusters
}

// awaiting is a stack that follows versions of add-on web, and has another one.
func awaiting() *addonsv1.AddonStack {
	s := stacks.Following()
	s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{
		Name: "dns", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: "oci://example.org/dns"}},
	})
	return s
}

func told(of []addonsv1.StackSource) []string {
	var all []string
	for _, from := range of {
		c := from.Conditions[0]
		all = append(all, fmt.Sprintf("%s %s %s %s %s", from.Addon, from.Address, c.Status, c.Reason, c.Message))
	}
	return all
}

// While a spec waits, each of its sources says for itself what is wrong, also if none
// of it was ever in force.
func TestPendingSources(t *testing.T) {
	refused := &failure.Error{Reason: failure.SourceUnauthorized, Field: "chart.oci", Err: errors.New("example.org answers 401")}
	gone := &failure.Error{Reason: failure.ArtifactNotFound, Field: "spec.source.oci", Err: errors.New("there is none")}
	for name, tc := range map[string]struct {
		change  func(*addonsv1.AddonStackSpec)
		found   following.Found
		bundle  *failure.Error
		inForce bool
		want    []string
	}{
		"the look continues": {want: []string{
			"web oci://example.org/web:~1.4 Unknown ArtifactPending Looking for the newest version of add-on web in the range ~1.4",
			"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
		}},
		"it failed": {found: following.Found{Err: refused}, want: []string{
			"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
			"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
		}},
		"clusters have the other one": {found: following.Found{Err: refused}, inForce: true, want: []string{
			"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
			"dns oci://example.org/dns:1.0.0 True Available ",
		}},
		"they have another version of it": {
			change: func(spec *addonsv1.AddonStackSpec) { spec.Addons[1].Chart.Version = "2.0.0" }, found: following.Found{Err: refused}, inForce: true,
			want: []string{
				"web oci://example.org/web:~1.4 False SourceUnauthorized addons[web].chart.oci: example.org answers 401",
				"dns oci://example.org/dns:2.0.0 Unknown NotAsked No cluster has asked for it yet",
			},
		},
		"its bundle isn't there": {
			change: func(spec *addonsv1.AddonStackSpec) {
				spec.Addons = nil
				spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Version: "v1", OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}}}
			},
			bundle: gone, want: []string{"spec.source oci://example.org/stacks:v1 False ArtifactNotFound spec.source.oci: there is none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, inForce := awaiting(), (*addonsv1.AddonStackSpec)(nil)
			s.Name, s.Status.LatestRevision = "base", "base-1"
			if tc.inForce {
				inForce = s.Spec.DeepCopy()
				inForce.Addons = inForce.Addons[1:]
			}
			if tc.change != nil {
				tc.change(&s.Spec)
			}
			f := following.Resolve(s, stack.Followers(&s.Spec), nil, &following.Poll{Results: map[string]following.Found{"web": tc.found}})
			f.Bundle = tc.bundle
			clusters := clustersWith("dns", []addonsv1.AddonStatus{{Phase: addonsv1.AddonReady, RecordDigest: "sha256:1"}})
			if got := told(sources.Of(s, inForce, clusters, f)); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// What is followed was fetched by the stack itself, whether clusters want it or not.
func TestWhatIsFollowedWasAsked(t *testing.T) {
	s := awaiting()
	pins := stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:a"}}
	want := []string{
		"web oci://example.org/web@sha256:a True Available ",
		"dns oci://example.org/dns:1.0.0 Unknown NotAsked No cluster has asked for it yet",
	}
	f := following.Resolve(s, stack.Followers(&s.Spec), pins, &following.Poll{})
	inForce := pins.Into(&s.Spec)
	if got := told(sources.Of(s, inForce, nil, f)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhoseObjectsWakeAStack(t *testing.T) {
	verify := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	oci := func(secret string) *addonsv1.OCISource {
		return &addonsv1.OCISource{URL: "oci://example.org/web", SecretRef: &addonsv1.CredentialsReference{Name: secret}}
	}
	s := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{
		Source: &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Verify: verify, Version: "docker-scs-1-31-v1", OCI: oci("of-bundle")}},
		Addons: []addonsv1.Addon{
			{Name: "a", Chart: addonsv1.ChartSource{Version: "1.x", OCI: oci("of-range"), Verify: &addonsv1.Verification{
				Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "Secret", Name: "keyring"}},
			}}},
			{Name: "b", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: oci("of-version")}},
			{Name: "c", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.x", OCI: oci("of-files")}}},
		},
	}}
	for object, want := range map[[2]string]bool{
		{"Secret", "of-bundle"}: true, {"ConfigMap", "keys"}: true, {"Secret", "of-range"}: true, {"Secret", "keyring"}: true, {"Secret", "of-files"}: true,
		{"Secret", "of-version"}: true, {"Secret", "keys"}: false, {"ConfigMap", "of-bundle"}: false, {"ConfigMap", "other"}: false,
	} {
		if got := sources.Uses(s, object[0], object[1]); got != want {
			t.Errorf("%s: %v, want %v", object, got, want)
		}
	}
}
