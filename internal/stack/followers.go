// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Follower is what a stack takes the newest version of: an add-on, or its bundle.
type Follower struct {
	// Name is the add-on's, or [addonsv1.FollowedSource].
	Name string
	// Either Addon or Bundle is set. They are part of the spec.
	Addon  *addonsv1.Addon
	Bundle *addonsv1.BundleSource
	// Line that the versions are of.
	Line versions.Line

	kind    string  // the field with the source
	version *string // in the spec, or a copy of what the source itself names
	source  reference.Followed
	path    *field.Path // of the source
}

// Followers returns what of the spec follows versions, the bundle first.
func Followers(spec *addonsv1.AddonStackSpec) []Follower {
	var followers []Follower
	for _, f := range sourcesOf(spec) {
		if line, err := f.line(); line != nil && err == nil {
			f.Line = line
			followers = append(followers, f)
		}
	}
	return followers
}

// sourcesOf returns what of the spec could follow versions, the bundle first. None has a line.
func sourcesOf(spec *addonsv1.AddonStackSpec) []Follower {
	var all []Follower
	path := field.NewPath("spec")
	if bundle := spec.Source; bundle != nil {
		f := Follower{Name: addonsv1.FollowedSource, Bundle: bundle, path: path.Child("source")}
		all = append(all, f.from("source", &bundle.Version, reference.BundleOf("", bundle)))
	}
	for i := range spec.Addons {
		f := sourceOf(&spec.Addons[i])
		f.path = path.Child("addons").Index(i).Child(f.kind)
		all = append(all, f)
	}
	return all
}

// sourceOf returns an add-on as what could follow versions, without a line and a path.
func sourceOf(addon *addonsv1.Addon) Follower {
	f := Follower{Name: addon.Name, Addon: addon}
	switch chart, k, m := &addon.Chart, addon.Kustomization, addon.Manifests; {
	case k != nil:
		return f.from("kustomization", &k.Version, reference.KustomizationOf("", k))
	case m != nil:
		return f.from("manifests", &m.Version, reference.ManifestsOf("", m))
	default:
		return f.from(kindChart, &chart.Version, reference.ChartOf("", *chart))
	}
}

const kindChart = "chart"

// from returns the follower with the field that its source is in.
func (f Follower) from(kind string, version *string, ref reference.Reference) Follower {
	f.kind, f.version, f.source = kind, version, ref.Followed()
	if f.source.Version != nil {
		f.version = new(f.source.Version())
	}
	return f
}

// IsWatched reports whether a watch tells of its versions: to ask for them costs nothing.
func (f Follower) IsWatched() bool { return f.source.IsWatched }

// String names it in messages.
func (f Follower) String() string {
	if f.Bundle != nil {
		return f.Name
	}
	return "add-on " + f.Name
}

// line returns the line of versions that is followed, nil if none is.
//
// A chart has semantic versions, and all that isn't one is a range. Whatever else is
// published has any tags, so a range has to look like one.
func (f Follower) line() (versions.Line, error) {
	if f.source.Of == "" {
		return nil, nil
	}
	version := *f.version
	switch {
	case f.source.Line != nil && version != "":
		return nil, nil
	case f.source.Line != nil:
		return f.source.Line()
	case f.Bundle != nil && f.Bundle.ClusterStack != "":
		return clusterstack.ParseChannel(f.Bundle.ClusterStack, f.Bundle.Channel)
	case version == "", versions.IsExact(version), f.kind != kindChart && !versions.IsRange(version):
		return nil, nil
	}
	return versions.ParseRange(version)
}

// pin names one version, and takes out what says how it is found.
func (f Follower) pin(pin Pin) {
	*f.version = pin.Version
	if f.source.Pin != nil {
		f.source.Pin(pin.Version)
	}
	*f.source.Digest = pin.Digest
	if f.Bundle != nil {
		f.Bundle.ClusterStack, f.Bundle.Channel = "", ""
	}
}

// NextPoll returns when a source is looked at next: once in each interval, at a moment that depends on the source alone. So all
// stacks that follow the source share a look, and a restart makes no wave of requests.
func NextPoll(source string, updates *addonsv1.Updates, after time.Time) time.Time {
	interval := addonsv1.DefaultUpdateInterval
	if updates != nil && updates.Interval != nil && updates.Interval.Duration > 0 {
		interval = updates.Interval.Duration
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(source)) // it never fails
	phase := time.Duration(sum.Sum64() % uint64(interval))
	return after.Add(interval - (time.Duration(after.UnixNano())-phase)%interval)
}

// Warnings names the fields of a spec with a rollout that contradict each other, or have a tag such as "latest". Each cluster
// looks such a tag up in its turn, so later waves may get other content than the first one.
func Warnings(spec *addonsv1.AddonStackSpec) (all []string) {
	if spec.Rollout == nil {
		return nil
	}
	if limit := spec.Rollout.MaxFailed; spec.Rollout.OnFailure == addonsv1.RolloutRollBack && limit != nil && limit.StrVal == "100%" {
		all = append(all, "spec.rollout.maxFailed: 100% lets all clusters fail, so onFailure: RollBack never does anything. Lower it")
	}
	within, ready := addonsv1.DefaultReadyWithin, addonsv1.DefaultMinReady
	if own := spec.Rollout.ReadyWithin; own != nil {
		within = own.Duration
	}
	if own := spec.Rollout.MinReady; own != nil {
		ready = own.Duration
	}
	if within < ready {
		all = append(all, fmt.Sprintf("spec.rollout.readyWithin: %s is shorter than minReady (%s), so clusters may fail before they can be done. Raise it", within, ready))
	}
	for _, source := range sourcesOf(spec) {
		line, err := source.line()
		version, at := *source.version, source.source
		if line != nil || err != nil || at.Pin != nil || at.Of == "" || *at.Digest != "" || version == "" || versions.IsExact(version) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %q names a tag that may be moved while it is rolled out, and later waves would get other content. Name a digest, a range or an exact version",
			source.path.Child("version"), version))
	}
	return all
}
