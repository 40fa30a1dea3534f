// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// How many records of one cluster are kept that name its ClusterAddon as their owner, and how many bytes of
// their metadata. A stack has at most 64 add-ons, and an add-on some ten records of about 2 KiB.
const (
	maxRecords     = 4096
	maxRecordsSize = 16 << 20
)

// errPreviousState ends the watch of a cluster that shows an older state than before.
var errPreviousState = errors.New("the release records are those of a previous time, as after a restore")

// recordSet are the records of the owner that are kept, by name.
type recordSet struct {
	owner   string
	proofs  func() map[deliver.Release]string
	records map[types.NamespacedName]*metav1.PartialObjectMetadata
	size    int // in bytes
}

func newRecordSet(owner string, proofs func() map[deliver.Release]string) *recordSet {
	return &recordSet{owner: owner, proofs: proofs, records: map[types.NamespacedName]*metav1.PartialObjectMetadata{}}
}

// put puts what is needed of a record in the place of the one of its name. It reports whether either is the
// owner's: others, as those of another management cluster, aren't kept.
func (s *recordSet) put(record *metav1.PartialObjectMetadata) (concerned bool) {
	concerned = s.drop(nameOf(record))
	if summary, ok := deliver.SummaryOf(&record.ObjectMeta); !ok || !summary.IsOwnedBy(s.owner) {
		return concerned
	}
	record = needed(record)
	s.records[nameOf(record)] = record
	s.size += sizeOf(record)
	for len(s.records) > maxRecords || s.size > maxRecordsSize {
		s.shrink()
	}
	return true
}

// drop reports whether there was a record of the name.
func (s *recordSet) drop(name types.NamespacedName) bool {
	record, there := s.records[name]
	if there {
		delete(s.records, name)
		s.size -= sizeOf(record)
	}
	return there
}

// shrink drops the last eighth of the namespace that has most of the records that count least. A user who can write
// Secrets there can make up records. Such records take no place of add-ons in other namespaces, nor of a record that is
// proven.
func (s *recordSet) shrink() {
	proofs := s.proofs()
	least := proven
	sizes, names := map[string]int{}, map[string][]string{}
	for name, record := range s.records {
		worth := worthOf(record, proofs)
		if worth > least {
			continue
		}
		if worth < least {
			least = worth
			clear(sizes)
			clear(names)
		}
		sizes[name.Namespace] += sizeOf(record)
		names[name.Namespace] = append(names[name.Namespace], name.Name)
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(sizes)), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	there := names[largest]
	slices.Sort(there)
	for _, name := range there[len(there)-(len(there)+7)/8:] {
		s.drop(types.NamespacedName{Namespace: largest, Name: name})
	}
}

// worth is how much it takes to make a record up.
type worth int

const (
	claimed  worth = iota // a Secret with its labels
	expected              // one in the namespace of a release whose record was proven
	proven                // what was written for the owner
)

func worthOf(record *metav1.PartialObjectMetadata, proofs map[deliver.Release]string) worth {
	proof := proofs[deliver.Release{Namespace: record.Namespace, Name: record.Labels["name"]}]
	if proof == "" {
		return claimed
	}
	if summary, ok := deliver.SummaryOf(&record.ObjectMeta); ok && summary.IsProvenBy(proof) {
		return proven
	}
	return expected
}

// recordStore keeps what is needed of the metadata of records.
type recordStore struct {
	mu      sync.RWMutex
	set     *recordSet // nil until they have been listed
	version string     // the latest resourceVersion

	changed func() // is called after a change of a record of the owner
}

// list returns the records; false if they aren't known.
func (s *recordStore) list() ([]metav1.PartialObjectMetadata, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.set == nil {
		return nil, false
	}
	records := make([]metav1.PartialObjectMetadata, 0, len(s.set.records))
	for _, record := range s.set.records {
		records = append(records, *record)
	}
	return records, true
}

// replace takes in a list, which is complete.
func (s *recordStore) replace(set *recordSet, version string) error {
	s.mu.Lock()
	isPrevious := s.isBefore(version, set.records)
	s.set, s.version = set, version
	s.mu.Unlock()
	if isPrevious {
		return errPreviousState
	}
	s.changed()
	return nil
}

// change puts a record in place of the one of its name, or takes that away.
func (s *recordStore) change(record *metav1.PartialObjectMetadata, there bool) error {
	s.mu.Lock()
	concerned := false
	if s.set != nil {
		s.version = record.ResourceVersion
		if there {
			concerned = s.set.put(record)
		} else {
			concerned = s.set.drop(nameOf(record))
		}
	}
	s.mu.Unlock()
	if concerned {
		s.changed()
	}
	return nil
}

// isFilled reports whether records have been listed.
func (s *recordStore) isFilled() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.set != nil
}

// isBefore reports whether a list is of a time before what is known. The version of the
// whole list doesn't show that if others have written much since: then that of a record
// does.
func (s *recordStore) isBefore(version string, records map[types.NamespacedName]*metav1.PartialObjectMetadata) bool {
	if isOlder(version, s.version) {
		return true
	}
	if s.set == nil {
		return false
	}
	for name, was := range s.set.records {
		if now := records[name]; now != nil && now.UID == was.UID && isOlder(now.ResourceVersion, was.ResourceVersion) {
			return true
		}
	}
	return false
}

// isOlder reports whether resourceVersion a is older than b. A version that can't be compared isn't
// older.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// needed returns what a summary is made of: labels of Helm and ours, and our annotations.
func needed(record *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: record.Namespace, Name: record.Name, UID: record.UID,
		ResourceVersion: record.ResourceVersion, CreationTimestamp: record.CreationTimestamp,
		Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	for key, value := range record.Labels {
		if ours(key) || slices.Contains(helmLabels, key) {
			kept.Labels[key] = value
		}
	}
	for key, value := range record.Annotations {
		if ours(key) {
			kept.Annotations[key] = value
		}
	}
	return kept
}

// helmLabels are those that Helm puts on its records.
var helmLabels = []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"}

func ours(key string) bool { return strings.HasPrefix(key, "addons.cluster.x-k8s.io/") }

func nameOf(record *metav1.PartialObjectMetadata) types.NamespacedName {
	return types.NamespacedName{Namespace: record.Namespace, Name: record.Name}
}

// sizeOf returns about how many bytes are kept of a record.
func sizeOf(record *metav1.PartialObjectMetadata) int {
	size := 512 + len(record.Namespace) + len(record.Name) + len(record.UID) + len(record.ResourceVersion)
	for _, texts := range []map[string]string{record.Labels, record.Annotations} {
		for key, value := range texts {
			size += len(key) + len(value)
		}
	}
	return size
}
