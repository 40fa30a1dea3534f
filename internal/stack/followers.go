// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

	at   address
	path *field.Path // of the address
}

// Followers returns what of the spec follows versions, the bundle first.
func Followers(spec *addonsv1.AddonStackSpec) []Follower {
	var followers []Follower
	for _, f := range sourcesOf(spec) {
		if line, err := lineOf(f.at); line != nil && err == nil {
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
		at := bundleAddress(bundle)
		all = append(all, Follower{Name: addonsv1.FollowedSource, Bundle: bundle, at: at, path: path.Child(at.kind)})
	}
	for i := range spec.Addons {
		addon := &spec.Addons[i]
		at := addonAddress(addon)
		all = append(all, Follower{Name: addon.Name, Addon: addon, at: at, path: path.Child("addons").Index(i).Child(at.kind)})
	}
	return all
}

// String names it in messages.
func (f Follower) String() string {
	if f.Bundle != nil {
		return f.Name
	}
	return "add-on " + f.Name
}

// address is where something with versions comes from. It points to the fields of the spec themselves.
type address struct {
	kind    string // the field that it is in
	version *string
	// digest is the field that names the content, nil if there are no versions.
	digest *string
	// identity is of what has the versions.
	identity string
	// bundle is set if it is one.
	bundle *addonsv1.BundleSource
}

// addressOf returns the address at a field with one of the sources that have versions, or none.
func addressOf(
	kind string, version *string, oci *addonsv1.OCISource, helm *addonsv1.HelmSource, github *addonsv1.GitHubSource,
) address {
	a := address{kind: kind, version: version}
	switch {
	case oci != nil:
		a.digest, a.identity = &oci.Digest, kind+" "+oci.URL
	case helm != nil:
		a.digest, a.identity = &helm.Digest, kind+" "+helm.URL+" "+helm.Chart
	case github != nil:
		a.digest = &github.Digest
		a.identity = strings.Join([]string{kind, github.URL, github.APIURL, github.TagPrefix, github.Asset}, " ")
	}
	return a
}

func addonAddress(addon *addonsv1.Addon) address {
	switch chart, k, m := &addon.Chart, addon.Kustomization, addon.Manifests; {
	case k != nil:
		return addressOf("kustomization", &k.Version, k.OCI, nil, k.GitHub)
	case m != nil:
		return addressOf("manifests", &m.Version, m.OCI, nil, m.GitHub)
	default:
		return addressOf(kindChart, &chart.Version, chart.OCI, chart.Helm, chart.GitHub)
	}
}

const kindChart = "chart"

func bundleAddress(bundle *addonsv1.BundleSource) address {
	at := addressOf("source", &bundle.Version, bundle.OCI, nil, bundle.GitHub)
	at.bundle = bundle
	return at
}

// lineOf returns the line of versions that is followed there, nil if none is.
//
// A chart has semantic versions, and all that isn't one is a range. Whatever else is
// published has any tags, so a range has to look like one.
func lineOf(at address) (versions.Line, error) {
	if at.digest == nil {
		return nil, nil
	}
	version := *at.version
	switch {
	case at.bundle != nil && at.bundle.ClusterStack != "":
		return line(clusterstack.ParseChannel(at.bundle.ClusterStack, at.bundle.Channel))
	case version == "", versions.IsExact(version), at.kind != kindChart && !versions.IsRange(version):
		return nil, nil
	}
	return line(versions.ParseRange(version))
}

// line returns nothing but the error if there is one.
func line[L versions.Line](of L, err error) (versions.Line, error) {
	if err != nil {
		return nil, err
	}
	return of, nil
}

// pin names one version, and takes out what says how it is found.
func (a address) pin(pin Pin) {
	*a.version, *a.digest = pin.Version, pin.Digest
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
