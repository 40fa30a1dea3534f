// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

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

// recordSet are the records of the owner that are kept, by the names of their Secrets.
type recordSet struct {
	owner   string
	proofs  func() map[deliver.Release]string
	records map[types.NamespacedName]keptRecord
	size    int // in bytes
}

// keptRecord is what is kept of a record.
type keptRecord struct {
	deliver.Summary
	size int // in bytes, about
}

func newRecordSet(owner string, proofs func() map[deliver.Release]string) *recordSet {
	return &recordSet{owner: owner, proofs: proofs, records: map[types.NamespacedName]keptRecord{}}
}

// put puts what is needed of a record in the place of the one of its name. It reports whether either is the
// owner's: others, as those of another management cluster, aren't kept.
func (s *recordSet) put(secret *metav1.PartialObjectMetadata) (concerned bool) {
	concerned = s.drop(nameOf(secret))
	summary, ok := deliver.SummaryOf(&secret.ObjectMeta)
	if !ok || !summary.IsOwnedBy(s.owner) {
		return concerned
	}
	record := keptRecord{summary, sizeOf(secret)}
	s.records[nameOf(secret)] = record
	s.size += record.size
	for len(s.records) > maxRecords || s.size > maxRecordsSize {
		s.shrink()
	}
	return true
}

// drop reports whether there was a record of the name.
func (s *recordSet) drop(name types.NamespacedName) bool {
	record, there := s.records[name]
	delete(s.records, name)
	s.size -= record.size
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
		trust := trustOf(record, proofs)
		if trust > least {
			continue
		}
		if trust < least {
			least = trust
			clear(sizes)
			clear(names)
		}
		sizes[name.Namespace] += record.size
		names[name.Namespace] = append(names[name.Namespace], name.Name)
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(sizes)), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	there := names[largest]
	slices.Sort(there)
	for _, name := range there[len(there)-(len(there)+7)/8:] {
		s.drop(types.NamespacedName{Namespace: largest, Name: name})
	}
}

// trust ranks records by how hard they are to forge.
type trust int

const (
	claimed  trust = iota // a Secret with its labels
	expected              // one in the namespace of a release whose record was proven
	proven                // what was written for the owner
)

func trustOf(record keptRecord, proofs map[deliver.Release]string) trust {
	switch proof := proofs[record.Release]; {
	case proof == "":
		return claimed
	case record.IsProvenBy(proof):
		return proven
	}
	return expected
}

// clusterRecords are what is known of one connection's records.
type clusterRecords struct {
	owner   string
	changed func() // is called after a change of a record of the owner

	mu      sync.RWMutex
	set     *recordSet // nil until they have been listed
	version string     // the latest resourceVersion
	err     error      // why they can't be read or watched
	sticks  time.Time  // until then a success doesn't mean that the err is over
}

// list returns the records; false if they aren't known.
func (s *clusterRecords) list() (records []deliver.Summary, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.set == nil {
		return nil, false
	}
	for _, record := range s.set.records {
		records = append(records, record.Summary)
	}
	return records, true
}

// replace takes in a list, which is complete.
func (s *clusterRecords) replace(set *recordSet, version string) error {
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
func (s *clusterRecords) change(secret *metav1.PartialObjectMetadata, there bool) error {
	s.mu.Lock()
	s.version = secret.ResourceVersion
	var concerned bool
	if there {
		concerned = s.set.put(secret)
	} else {
		concerned = s.set.drop(nameOf(secret))
	}
	s.mu.Unlock()
	if concerned {
		s.changed()
	}
	return nil
}

// note keeps the error of the last request, nil if it went well, and reports whether that is
// news.
func (s *clusterRecords) note(now time.Time, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && (s.err == nil || now.Before(s.sticks)) {
		return false
	}
	if _, broken := errors.AsType[*brokenWatch](err); broken {
		s.sticks = now.Add(failureStays)
	}
	news := err == nil || s.err == nil || s.err.Error() != err.Error()
	s.err = err
	return news
}

// isBefore reports whether a list is of a time before what is known. The version of the
// whole list doesn't show that if others have written much since: then that of a record
// does.
func (s *clusterRecords) isBefore(version string, records map[types.NamespacedName]keptRecord) bool {
	if isOlder(version, s.version) {
		return true
	}
	if s.set == nil {
		return false
	}
	for name, was := range s.set.records {
		if now, there := records[name]; there && now.UID == was.UID && isOlder(now.ResourceVersion, was.ResourceVersion) {
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

func nameOf(secret *metav1.PartialObjectMetadata) types.NamespacedName {
	return types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
}

// sizeOf returns about how many bytes are kept of a record: the texts of its summary are parts of our annotations.
func sizeOf(secret *metav1.PartialObjectMetadata) int {
	size := 1 << 10
	for key, value := range secret.Annotations {
		if strings.HasPrefix(key, "addons.cluster.x-k8s.io/") {
			size += len(value)
		}
	}
	return size
}
