// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
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

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
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
	facts.APIVersions = slices.Clone(slices.Compact(facts.APIVersions)) // of its own size
	for _, gv := range failed {
		facts.Incomplete = append(facts.Incomplete, gv.String())
	}
	slices.Sort(facts.Incomplete)
	return facts
}

// found is what a cluster offers. All clusters that offer the same share it.
type found struct {
	facts  Facts // without the version of Kubernetes
	groups []*restmapper.APIGroupResources
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

// kept are the APIs of a digest, and what they take.
type kept struct {
	digest [sha256.Size]byte
	claim  *budget.Claim
}

// shared returns the APIs that a cluster offers. They count for the one that had them first, once there is room for them.
func (d *discovered) shared(ctx context.Context, of *transport.Transport) (*found, error) {
	d.sort()
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("reading the discovered APIs: %w", err)
	}
	cost := d.cost()
	if most := of.Limits.Documents; most > 0 && cost > 4*most {
		return nil, tooManyKinds("the kinds have so long names that %d KiB would be kept; at most %d are", cost>>10, most>>8)
	}
	is := kept{sha256.Sum256(data), of.Memory.Lasting(of.Tenant)}
	if err := answer.Hold(ctx, is.claim, cost, of.Timeout/5*4, "What is kept of the kinds of the cluster", true); err != nil {
		return nil, err
	}
	sharedAPIs.Lock()
	defer sharedAPIs.Unlock()
	if known := sharedAPIs.byDigest[is.digest].Value(); known != nil {
		is.claim.End()
		return known, nil
	}
	made := &found{facts: factsOf(d.Groups, d.Lists, d.Failed), groups: d.groupResources()}
	sharedAPIs.byDigest[is.digest] = weak.Make(made)
	runtime.AddCleanup(made, kept.forget, is)
	return made, nil
}

// forget drops what no connection has any more, unless it was made again meanwhile.
func (k kept) forget() {
	k.claim.End()
	sharedAPIs.Lock()
	defer sharedAPIs.Unlock()
	if sharedAPIs.byDigest[k.digest].Value() == nil {
		delete(sharedAPIs.byDigest, k.digest)
	}
}

// sort puts what comes in any order into one. The order of groups means nothing, while that of a group's versions does.
func (d *discovered) sort() {
	slices.SortFunc(d.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	slices.SortFunc(d.Failed, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
}

// groupResources returns the groups with what a RESTMapper is made of. Client-go's takes ten times as much.
func (d *discovered) groupResources() []*restmapper.APIGroupResources {
	byVersion := map[string][]metav1.APIResource{}
	for _, list := range d.Lists {
		byVersion[list.GroupVersion] = resourcesOf(list)
	}
	all := make([]*restmapper.APIGroupResources, 0, len(d.Groups))
	for _, group := range d.Groups {
		is := metav1.APIGroup{Name: group.Name, Versions: group.Versions, PreferredVersion: group.PreferredVersion}
		resources := &restmapper.APIGroupResources{Group: is, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if list, ok := byVersion[version.GroupVersion]; ok {
				resources.VersionedResources[version.Version] = list
			}
		}
		all = append(all, resources)
	}
	return all
}

// resourcesOf returns the resources that aren't a part of another one.
func resourcesOf(list *metav1.APIResourceList) []metav1.APIResource {
	var all []metav1.APIResource
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			all = append(all, metav1.APIResource{Name: r.Name, SingularName: r.SingularName, Kind: r.Kind, Namespaced: r.Namespaced})
		}
	}
	return slices.Clone(all) // of its own size
}

// Bytes that are kept of each API version, each resource, and each text, besides their texts (TestDiscoveryKept compares that with what they take).
const versionCost, resourceCost, textCost = 512, 224, 32

// cost returns how many bytes are kept of the APIs.
func (d *discovered) cost() (bytes int64) {
	for _, group := range d.Groups {
		for _, version := range group.Versions {
			bytes += versionCost + 2*int64(len(version.GroupVersion))
		}
	}
	for _, list := range d.Lists {
		for _, r := range list.APIResources {
			bytes += textCost + int64(len(list.GroupVersion)+len(r.Kind))
			if !strings.Contains(r.Name, "/") {
				bytes += resourceCost + int64(len(r.Name)+len(r.SingularName)+len(r.Kind))
			}
		}
	}
	return bytes
}

// mapping returns the resource of a kind, in the first of the versions that has it, or else in the one that the group prefers;
// nil if there is none. That is what client-go's RESTMapper returns.
func (f *found) mapping(kind schema.GroupKind, versions []string) *meta.RESTMapping {
	at := slices.IndexFunc(f.groups, func(g *restmapper.APIGroupResources) bool { return g.Group.Name == kind.Group })
	if at < 0 {
		return nil
	}
	group := f.groups[at]
	versions = slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == "" })
	if len(versions) == 0 {
		versions = append(versions, group.Group.PreferredVersion.Version)
		for _, version := range group.Group.Versions {
			versions = append(versions, version.Version)
		}
	}
	for _, version := range versions {
		for _, r := range slices.Backward(group.VersionedResources[version]) {
			if r.Kind == kind.Kind {
				scope := meta.RESTScopeRoot
				if r.Namespaced {
					scope = meta.RESTScopeNamespace
				}
				gv := schema.GroupVersion{Group: kind.Group, Version: version}
				return &meta.RESTMapping{Resource: gv.WithResource(r.Name), GroupVersionKind: gv.WithKind(r.Kind), Scope: scope}
			}
		}
	}
	return nil
}
