// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// factsOf lists the APIs as Helm does.
func factsOf(groups []metav1.APIGroup, lists []*metav1.APIResourceList, failed []schema.GroupVersion) Facts {
	var facts Facts
	for _, group := range groups {
		for _, version := range group.Versions {
			facts.APIVersions = append(facts.APIVersions, version.GroupVersion)
		}
	}
	for _, list := range lists {
		for i := range list.APIResources {
			facts.APIVersions = append(facts.APIVersions, list.GroupVersion+"/"+list.APIResources[i].Kind)
		}
	}
	slices.Sort(facts.APIVersions)
	facts.APIVersions = slices.Clip(slices.Compact(facts.APIVersions))
	for _, gv := range failed {
		facts.Incomplete = append(facts.Incomplete, gv.String())
	}
	slices.Sort(facts.Incomplete)
	return facts
}

// found is what a cluster offers. All clusters that offer the same share them: a RESTMapper takes
// about 400 KiB.
type found struct {
	facts  Facts // without the version of Kubernetes
	mapper meta.RESTMapper
}

// discovered is what a cluster says that it offers.
type discovered struct {
	Groups []metav1.APIGroup
	Lists  []*metav1.APIResourceList
	Failed []schema.GroupVersion
}

// sharedAPIs are those that some connection has. The key is the digest of all that they are made
// of: what a cluster says of itself, such as an ETag, would let it answer for others.
var sharedAPIs = struct {
	sync.Mutex
	byDigest map[[sha256.Size]byte]weak.Pointer[found]
}{byDigest: map[[sha256.Size]byte]weak.Pointer[found]{}}

// shared returns the APIs that a cluster offers.
func (d *discovered) shared() (*found, error) {
	d.sort()
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("reading the discovered APIs: %w", err)
	}
	digest := sha256.Sum256(data)
	sharedAPIs.Lock()
	defer sharedAPIs.Unlock()
	if known := sharedAPIs.byDigest[digest].Value(); known != nil {
		return known, nil
	}
	made := &found{facts: factsOf(d.Groups, d.Lists, d.Failed), mapper: restmapper.NewDiscoveryRESTMapper(d.groupResources())}
	sharedAPIs.byDigest[digest] = weak.Make(made)
	runtime.AddCleanup(made, forgetAPIs, digest)
	return made, nil
}

// forgetAPIs drops what no connection has any more, unless it was made again meanwhile.
func forgetAPIs(digest [sha256.Size]byte) {
	sharedAPIs.Lock()
	defer sharedAPIs.Unlock()
	if sharedAPIs.byDigest[digest].Value() == nil {
		delete(sharedAPIs.byDigest, digest)
	}
}

// sort puts what comes in any order into one. The order of groups means nothing, while that of a group's versions does.
func (d *discovered) sort() {
	slices.SortFunc(d.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	slices.SortFunc(d.Failed, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
}

// groupResources returns the groups as a RESTMapper is made of them.
func (d *discovered) groupResources() []*restmapper.APIGroupResources {
	byVersion := map[string][]metav1.APIResource{}
	for _, list := range d.Lists {
		byVersion[list.GroupVersion] = list.APIResources
	}
	all := make([]*restmapper.APIGroupResources, 0, len(d.Groups))
	for _, group := range d.Groups {
		resources := &restmapper.APIGroupResources{Group: group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if list, ok := byVersion[version.GroupVersion]; ok {
				resources.VersionedResources[version.Version] = list
			}
		}
		all = append(all, resources)
	}
	return all
}
