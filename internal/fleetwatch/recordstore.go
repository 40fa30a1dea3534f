// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// How many records of one cluster are kept, and how many bytes of their metadata. A
// stack has at most 64 add-ons, and an add-on some ten records of about 2 KiB.
const (
	maxRecords     = 4096
	maxRecordsSize = 16 << 20
)

// errTooManyRecords ends the watch of a cluster's records.
var errTooManyRecords = &fleet.LimitError{
	Reason: reasons.RecordsUnreadable,
	Message: fmt.Sprintf("the workload cluster has more than %d release records of add-ons, or more than %d MiB of their metadata; delete Secrets with the label owner=helm that no add-on needs",
		maxRecords, maxRecordsSize>>20),
}

// errFormerState ends the watch of a cluster that shows an older state than before.
var errFormerState = errors.New("the release records are those of a former time, as after a restore")

// recordStore keeps what is needed of the metadata of records.
type recordStore struct {
	mu      sync.RWMutex
	records map[types.NamespacedName]*metav1.PartialObjectMetadata // nil until they have been listed
	size    int
	version string // the latest resourceVersion

	owner   string
	changed func() // is called after a change of a record of the owner
}

// list returns the records; false if they aren't known.
func (s *recordStore) list() ([]metav1.PartialObjectMetadata, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	records := make([]metav1.PartialObjectMetadata, 0, len(s.records))
	for _, record := range s.records {
		records = append(records, *record)
	}
	return records, s.records != nil
}

// replace takes in a list, which is complete. It has been bounded before.
func (s *recordStore) replace(list *metav1.PartialObjectMetadataList) error {
	records, size := make(map[types.NamespacedName]*metav1.PartialObjectMetadata, len(list.Items)), 0
	for i := range list.Items {
		record := &list.Items[i]
		records[nameOf(record)] = record
		size += sizeOf(record)
	}
	s.mu.Lock()
	isFormer := s.isBefore(list.ResourceVersion, records)
	s.records, s.size, s.version = records, size, list.ResourceVersion
	s.mu.Unlock()
	if isFormer {
		return errFormerState
	}
	s.changed()
	return nil
}

// change puts a record in place of the one of its name, or takes that away. Records
// that are too many are dropped, all of them: what is missing would be taken for gone.
func (s *recordStore) change(record *metav1.PartialObjectMetadata, there bool) error {
	s.mu.Lock()
	if s.records == nil {
		s.mu.Unlock()
		return nil
	}
	name := nameOf(record)
	s.version = record.ResourceVersion
	concerned := s.concerns(record)
	if old, ok := s.records[name]; ok {
		concerned = concerned || s.concerns(old)
		s.size -= sizeOf(old)
		delete(s.records, name)
	}
	if there {
		record = needed(record)
		s.records[name] = record
		s.size += sizeOf(record)
	}
	excess := len(s.records) > maxRecords || s.size > maxRecordsSize
	if excess {
		s.records, s.size = nil, 0
	}
	s.mu.Unlock()
	if excess || concerned {
		s.changed()
	}
	if excess {
		return errTooManyRecords
	}
	return nil
}

// concerns reports whether a record may be of the owner. Others that have add-ons on the same
// cluster, as another management cluster, would start a reconcile with each of their writes.
func (s *recordStore) concerns(record *metav1.PartialObjectMetadata) bool {
	summary, ok := deliver.SummaryOf(&record.ObjectMeta)
	return !ok || summary.Owner == "" || summary.IsOwnedBy(s.owner)
}

// isFilled reports whether records have been listed.
func (s *recordStore) isFilled() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records != nil
}

// isBefore reports whether a list is of a time before what is known. The version of the
// whole list doesn't show that if others have written much since: then that of a record
// does.
func (s *recordStore) isBefore(version string, records map[types.NamespacedName]*metav1.PartialObjectMetadata) bool {
	if isOlder(version, s.version) {
		return true
	}
	for name, was := range s.records {
		if now := records[name]; now != nil && now.UID == was.UID && isOlder(now.ResourceVersion, was.ResourceVersion) {
			return true
		}
	}
	return false
}

// isOlder reports whether resourceVersion a is older than b. What can't be compared isn't
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
