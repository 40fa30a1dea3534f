// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
}

// Followers returns what of the spec follows versions, the bundle first.
func Followers(spec *addonsv1.AddonStackSpec) []Follower {
	var followers []Follower
	add := func(f Follower) {
		if line, err := lineOf(f.address()); line != nil && err == nil {
			f.Line = line
			followers = append(followers, f)
		}
	}
	if spec.Source != nil {
		add(Follower{Name: addonsv1.FollowedSource, Bundle: spec.Source})
	}
	for i := range spec.Addons {
		add(Follower{Name: spec.Addons[i].Name, Addon: &spec.Addons[i]})
	}
	return followers
}

// String names it in messages.
func (f Follower) String() string {
	if f.Bundle != nil {
		return f.Name
	}
	return "add-on " + f.Name
}

func (f Follower) address() address {
	if f.Bundle != nil {
		return bundleAddress(f.Bundle)
	}
	return addonAddress(f.Addon)
}

// address is where something with versions comes from. It has the fields of the spec
// themselves.
type address struct {
	kind    string // the field that it is in
	version *string
	// At most one of these is set.
	oci    *addonsv1.OCISource
	helm   *addonsv1.HelmSource
	github *addonsv1.GitHubSource
	// bundle is set if it is one.
	bundle *addonsv1.BundleSource
}

func addonAddress(addon *addonsv1.Addon) address {
	var at *addonsv1.ArtifactSource
	kind := ""
	switch {
	case addon.Kustomization != nil:
		at, kind = &addon.Kustomization.ArtifactSource, "kustomization"
	case addon.Manifests != nil:
		at, kind = &addon.Manifests.ArtifactSource, "manifests"
	default:
		chart := &addon.Chart
		return address{kind: kindChart, version: &chart.Version, oci: chart.OCI, helm: chart.Helm, github: chart.GitHub}
	}
	return address{kind: kind, version: &at.Version, oci: at.OCI, github: at.GitHub}
}

const kindChart = "chart"

func bundleAddress(bundle *addonsv1.BundleSource) address {
	return address{kind: "source", version: &bundle.Version, oci: bundle.OCI, github: bundle.GitHub, bundle: bundle}
}

// lineOf returns the line of versions that is followed there, nil if none is.
//
// A chart has semantic versions, and all that isn't one is a range. Whatever else is
// published has any tags, so a range has to look like one.
func lineOf(at address) (versions.Line, error) {
	if at.digest() == nil {
		return nil, nil
	}
	version := *at.version
	switch {
	case at.bundle != nil && at.bundle.ClusterStack != "":
		channel, err := clusterstack.ParseChannel(at.bundle.ClusterStack, at.bundle.Channel)
		if err != nil {
			return nil, err
		}
		return channel, nil
	case version == "", versions.IsExact(version), at.kind != kindChart && !versions.IsRange(version):
		return nil, nil
	}
	allowed, err := versions.ParseRange(version)
	if err != nil {
		return nil, err
	}
	return allowed, nil
}

// identity returns what has the versions.
func (a address) identity() string {
	switch {
	case a.oci != nil:
		return a.kind + " " + a.oci.URL
	case a.helm != nil:
		return a.kind + " " + a.helm.URL + " " + a.helm.Chart
	case a.github != nil:
		return a.kind + " " + a.github.URL + " " + a.github.APIURL + " " + a.github.TagPrefix + " " + a.github.Asset
	}
	return ""
}

// digest returns the field that names the content, nil if there are no versions.
func (a address) digest() *string {
	switch {
	case a.oci != nil:
		return &a.oci.Digest
	case a.helm != nil:
		return &a.helm.Digest
	case a.github != nil:
		return &a.github.Digest
	}
	return nil
}

// pin names one version, and takes out what says how it is found.
func (a address) pin(pin Pin) {
	*a.version, *a.digest() = pin.Version, pin.Digest
	if a.bundle != nil {
		a.bundle.ClusterStack, a.bundle.Channel = "", ""
	}
}

// NextPoll returns when a stack's sources are looked at next: once in each interval, at a moment that
// depends on the stack alone. So a restart makes no wave of requests.
func NextPoll(uid types.UID, updates *addonsv1.Updates, after time.Time) time.Time {
	interval := addonsv1.DefaultUpdateInterval
	if updates != nil && updates.Interval != nil && updates.Interval.Duration > 0 {
		interval = updates.Interval.Duration
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(uid)) // it never fails
	phase := time.Duration(sum.Sum64() % uint64(interval))
	return after.Add(interval - (time.Duration(after.UnixNano())-phase)%interval)
}
