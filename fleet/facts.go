// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Has tells whether APIVersions holds an entry.
func (f Facts) Has(apiVersion string) bool {
	_, found := slices.BinarySearch(f.APIVersions, apiVersion)
	return found
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
	c.apis.Store(found)
	c.mapper.forget()
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

// factsOf lists the APIs as Helm does. Strings are interned: a fleet has many
// clusters with the same APIs.
func factsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed []schema.GroupVersion) Facts {
	var facts Facts
	for _, group := range groups {
		for _, version := range group.Versions {
			facts.APIVersions = append(facts.APIVersions, intern(version.GroupVersion))
		}
	}
	for _, list := range lists {
		for i := range list.APIResources {
			facts.APIVersions = append(facts.APIVersions, intern(list.GroupVersion+"/"+list.APIResources[i].Kind))
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

func intern(s string) string { return unique.Make(s).Value() }
