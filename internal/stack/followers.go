// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
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

	kind    string // the field with the source
	version *string
	// digest is the field that names the content, nil if there are no versions. As version does, it points into the spec.
	digest *string
	named  named // nil of sources with a field for the version; else that is a copy
	// identity is of what has the versions.
	identity string
	path     *field.Path // of the source
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
		all = append(all, f.from("source", &bundle.Version, bundle.OCI, nil, bundle.GitHub, bundle.Git, bundle.Flux))
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
		return f.from("kustomization", &k.Version, k.OCI, nil, k.GitHub, k.Git, k.Flux)
	case m != nil:
		return f.from("manifests", &m.Version, m.OCI, nil, m.GitHub, m.Git, m.Flux)
	default:
		return f.from(kindChart, &chart.Version, chart.OCI, chart.Helm, chart.GitHub, chart.Git, chart.Flux)
	}
}

const kindChart = "chart"

// from returns the follower with the field that its source is in. The source is one that has versions, or none.
func (f Follower) from(
	kind string, version *string, oci *addonsv1.OCISource, helm *addonsv1.HelmSource, github *addonsv1.GitHubSource, git *addonsv1.GitSource,
	flux *addonsv1.FluxSource,
) Follower {
	f.kind, f.version = kind, version
	switch {
	case oci != nil:
		f.digest, f.identity = &oci.Digest, kind+" "+oci.URL
	case helm != nil:
		f.digest, f.identity = &helm.Digest, kind+" "+helm.URL+" "+helm.Chart
	case github != nil:
		f.digest = &github.Digest
		f.identity = strings.Join([]string{kind, github.URL, github.APIURL, github.TagPrefix, github.Asset}, " ")
	case git != nil:
		f.named, f.digest, f.identity = git, &git.Digest, kind+" "+git.URL+" "+git.Path
	case flux != nil:
		f.named, f.digest, f.identity = flux, &flux.Digest, kind+" "+flux.Kind+" "+flux.Name
	}
	if f.named != nil {
		f.version = new(f.named.Version())
	}
	return f
}

// IsWatched reports whether a watch tells of its versions: to ask for them costs nothing.
func (f Follower) IsWatched() bool {
	_, is := f.named.(*addonsv1.FluxSource)
	return is
}

// named is a source whose version is no field of its own.
type named interface {
	Version() string
	Pin(version, digest string)
}

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
	if f.digest == nil {
		return nil, nil
	}
	version := *f.version
	switch {
	case f.named != nil:
		return lineOf(f.named)
	case f.Bundle != nil && f.Bundle.ClusterStack != "":
		return clusterstack.ParseChannel(f.Bundle.ClusterStack, f.Bundle.Channel)
	case version == "", versions.IsExact(version), f.kind != kindChart && !versions.IsRange(version):
		return nil, nil
	}
	return versions.ParseRange(version)
}

// lineOf returns the line that a source follows, nil if it names a version.
func lineOf(source named) (versions.Line, error) {
	git, _ := source.(*addonsv1.GitSource)
	switch {
	case source.Version() != "":
		return nil, nil
	case git == nil:
		return versions.Latest{What: "artifact of Flux"}, nil
	case git.Semver != "":
		tags, err := versions.ParseRange(git.Semver)
		return versions.Within{Line: tags, Before: addonsv1.GitTags, After: addonsv1.GitCommit}, err
	case git.Tag != "":
		return versions.Latest{What: "tag " + git.Tag, Prefix: addonsv1.GitTags + git.Tag + addonsv1.GitCommit, Fixed: true}, nil
	}
	return versions.Latest{What: "branch " + git.Branch, Prefix: addonsv1.GitBranches + git.Branch + addonsv1.GitCommit}, nil
}

// pin names one version, and takes out what says how it is found.
func (f Follower) pin(pin Pin) {
	if f.named != nil {
		f.named.Pin(pin.Version, pin.Digest)
		return
	}
	*f.version, *f.digest = pin.Version, pin.Digest
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
		version, digest := *source.version, source.digest
		if line != nil || err != nil || source.named != nil || digest == nil || *digest != "" || version == "" || versions.IsExact(version) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %q names a tag that may be moved while it is rolled out, and later waves would get other content. Name a digest, a range or an exact version",
			source.path.Child("version"), version))
	}
	return all
}
