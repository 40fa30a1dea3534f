// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// incompleteFor is how long facts are kept when a part of the API could not be
// discovered, e.g. because an aggregated API server is down.
const incompleteFor = time.Minute

// Facts describe what a cluster offers.
type Facts struct {
	// KubernetesVersion is e.g. "v1.36.3".
	KubernetesVersion string
	// APIVersions is sorted and holds "apps/v1" as well as "apps/v1/Deployment",
	// as .Capabilities.APIVersions of Helm does.
	APIVersions []string
	// Incomplete lists, sorted, the group versions that are registered but
	// could not be discovered. Empty as a rule.
	Incomplete []string
}

// Facts returns what the cluster offers. The version is kept fresh by the
// probe; the APIs are discovered once, and again after InvalidateFacts or a
// change of the version. Callers that ask at the same time share one
// discovery. The slices are shared: don't change them.
func (c *Connection) Facts(ctx context.Context) (Facts, error) {
	select {
	case c.discovering <- struct{}{}:
	case <-ctx.Done():
		return Facts{}, fmt.Errorf("waiting for the discovery of APIs: %w", context.Cause(ctx))
	}
	defer func() { <-c.discovering }()

	wanted := c.factsWanted.Load()
	version := c.Version()
	f := c.facts
	stale := f.generation != wanted || f.KubernetesVersion != version ||
		(len(f.Incomplete) > 0 && c.clock.Since(f.discovered) > incompleteFor)
	if !stale {
		return f.Facts, nil
	}
	found, err := c.discover(ctx, version)
	if err != nil {
		return Facts{}, fmt.Errorf("discovering APIs: %w", err)
	}
	if err := c.mapper.renew(); err != nil {
		return Facts{}, fmt.Errorf("making a RESTMapper: %w", err)
	}
	c.apis.Store(found)
	facts := found.facts
	facts.KubernetesVersion = version
	c.facts = keptFacts{Facts: facts, generation: wanted, discovered: c.clock.Now()}
	return facts, nil
}

// shared returns the APIs that were discovered last. It discovers them if that is yet to be done.
func (c *Connection) shared() (*apis, error) {
	if known := c.apis.Load(); known != nil {
		return known, nil
	}
	if _, err := c.Facts(c.ctx); err != nil {
		return nil, err
	}
	return c.apis.Load(), nil
}

// InvalidateFacts makes the next Facts discover again, e.g. after a
// CustomResourceDefinition was installed.
func (c *Connection) InvalidateFacts() { c.factsWanted.Add(1) }

// keptFacts are facts with the time and generation they belong to.
type keptFacts struct {
	Facts
	generation uint64
	discovered time.Time
}

// factsOf lists the APIs as Helm does.
func factsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed []schema.GroupVersion) Facts {
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

// apis are what a cluster offers. All clusters that offer the same share them: a RESTMapper takes
// about 400 KiB.
type apis struct {
	facts  Facts // without the version of Kubernetes
	mapper meta.RESTMapper
}

// discovered is what a cluster says that it offers.
type discovered struct {
	Groups []*metav1.APIGroup
	Lists  []*metav1.APIResourceList
	Failed []schema.GroupVersion
}

// sharedAPIs are those that some connection has. The key is the digest of all that they are made
// of: what a cluster says of itself, such as an ETag, would let it answer for others.
var sharedAPIs = struct {
	sync.Mutex
	byDigest map[[sha256.Size]byte]weak.Pointer[apis]
}{byDigest: map[[sha256.Size]byte]weak.Pointer[apis]{}}

// shared returns the APIs that a cluster offers.
func (d *discovered) shared() (*apis, error) {
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
	made := &apis{facts: factsOf(d.Groups, d.Lists, d.Failed), mapper: restmapper.NewDiscoveryRESTMapper(d.groupResources())}
	sharedAPIs.byDigest[digest] = weak.Make(made)
	runtime.AddCleanup(made, forgetAPIs, digest)
	return made, nil
}

// forgetAPIs drops what no connection has any more, unless it was made anew meanwhile.
func forgetAPIs(digest [sha256.Size]byte) {
	sharedAPIs.Lock()
	defer sharedAPIs.Unlock()
	if sharedAPIs.byDigest[digest].Value() == nil {
		delete(sharedAPIs.byDigest, digest)
	}
}

// sort puts what comes in any order into one. The order of groups means nothing, while that of a group's versions does.
func (d *discovered) sort() {
	slices.SortFunc(d.Groups, func(a, b *metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
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
		resources := &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if list, ok := byVersion[version.GroupVersion]; ok {
				resources.VersionedResources[version.Version] = list
			}
		}
		all = append(all, resources)
	}
	return all
}
