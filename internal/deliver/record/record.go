// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/message"
)

// Release identifies an add-on in a cluster: it is the name of its Helm release.
type Release struct {
	Namespace, Name string
}

// String is "namespace/name".
func (r Release) String() string { return r.Namespace + "/" + r.Name }

// Record is one revision of a release, with everything that is stored of it.
type Record struct {
	// Summary is what the Secret's metadata says. Its fields are written back.
	Summary
	// Helm is Helm's record.
	Helm *helmrelease.Release
	// State is ours. It is nil in a record that Helm wrote.
	State *State
	// CRDs are those of the chart's crds/ directory, until the revision is deployed.
	CRDs []*unstructured.Unstructured
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter.
	WatchFilter string

	// size is how many bytes it had when it was read or written last, unpacked.
	size int64
	// holds is the digest of the manifest, hooks and CRDs. It is "" for a record of Helm's, and for CRDs that were changed.
	holds string
}

// State is what Chandler keeps beside Helm's record.
type State struct {
	// Format of this structure: 1.
	Format int `json:"format"`
	// Salt is random. With it, who can read a proof can't try out which passwords the record has.
	Salt string `json:"salt,omitempty"`
	// Inventory is every object that may be in the cluster because of this add-on.
	Inventory []Entry `json:"inventory,omitempty"`
	// Generated are values that were made up while rendering, to be kept.
	Generated map[string]string `json:"generated,omitempty"`
	// Sensitive are strings that came from Secrets and aren't in those of the manifest. They are hidden in
	// messages. PreviousSensitive are those of earlier revisions, until this one is deployed.
	Sensitive         []string `json:"sensitive,omitempty"`
	PreviousSensitive []string `json:"previousSensitive,omitempty"`
	// Hooks are the runs of this revision's hooks.
	Hooks []HookRun `json:"hooks,omitempty"`
	// EventsDone are the hook events that are over, cleanup included.
	EventsDone []string `json:"eventsDone,omitempty"`
	// AppliedAt is when all objects had been applied. The progress deadline counts
	// from here.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	// JobsDone are the Jobs of the manifest that ran to their end, with their UIDs: they
	// may be gone since, and aren't run again for this revision.
	JobsDone []Entry `json:"jobsDone,omitempty"`
	// ObjectsGone says that a removal has deleted the objects.
	ObjectsGone bool `json:"objectsGone,omitempty"`
	// Notes name what was left in the cluster, and why.
	Notes []string `json:"notes,omitempty"`
	// Adopted is the release of another name that is being taken over, until the add-on is
	// ready for the first time.
	Adopted *AdoptedRelease `json:"adopted,omitempty"`
	// CRDsDigest is that of the CRDs of crds/, "" if there are none.
	CRDsDigest string `json:"crdsDigest,omitempty"`
	// Parts name the other Secrets of a record that an earlier version of Chandler wrote: see [InParts].
	Parts []any `json:"parts,omitempty"`
}

// AdoptedRelease is a release of Helm whose record isn't where the add-on's is.
type AdoptedRelease struct {
	Name             string `json:"name"`
	StorageNamespace string `json:"storageNamespace"`
}

// HookKey identifies a hook within a revision, as it is run for an event.
type HookKey struct {
	Event helmrelease.HookEvent `json:"event"`
	Kind  string                `json:"kind"`
	Name  string                `json:"name"`
	Where string                `json:"where,omitempty"` // its API group and namespace, as "group/namespace"
}

// HookRun is the progress of one hook for one event.
type HookRun struct {
	HookKey
	Attempt   int                   `json:"attempt"`
	Phase     helmrelease.HookPhase `json:"phase"`
	StartedAt time.Time             `json:"startedAt,omitzero"`
	Message   string                `json:"message,omitempty"`
}

// SecretName is the name of the Secret that holds a revision, as Helm's storage
// names it (helm.sh/helm/v4/pkg/storage, makeKey).
func SecretName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// SetStatus sets Helm's status and its description.
func (r *Record) SetStatus(status helmcommon.Status, description string) {
	r.Helm.SetStatus(status, description)
	r.Status = status.String()
}

// MarkFailed notes why the revision failed, in words without secrets.
func (r *Record) MarkFailed(reason, text string) {
	r.SetStatus(helmcommon.StatusFailed, message.Shorten(reason+": "+text, 1024))
	r.Failure = message.Shorten(reason+": "+text, 512)
}

// Inventory returns the objects that this record answers for. When Helm wrote the
// record, these are the objects of its manifest, marked as Helm's.
func (r *Record) Inventory() ([]Entry, error) {
	if r.State != nil {
		return r.State.Inventory, nil
	}
	objects, err := r.Manifest()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(objects))
	for _, o := range objects {
		e := EntryOf(o)
		e.Helm = true
		entries = append(entries, e)
	}
	return entries, nil
}

// Manifest returns the objects of the manifest. The error is a [*Fault].
func (r *Record) Manifest() ([]*unstructured.Unstructured, error) {
	objects, err := ParseManifest(r.Helm.Manifest)
	if err != nil {
		return nil, r.unreadable(fmt.Errorf("reading its manifest: %w", err))
	}
	return objects, nil
}

// manifests returns those of the objects and of the hooks.
func (r *Record) manifests() []string {
	all := []string{r.Helm.Manifest}
	for _, h := range r.Helm.Hooks {
		all = append(all, h.Manifest)
	}
	return all
}

// Secrets returns the objects of kind Secret in the manifest and the hooks, as far as these can be read.
func (r *Record) Secrets() []*unstructured.Unstructured {
	var some strings.Builder // to parse the others takes most of the time
	for _, manifest := range r.manifests() {
		for document := range strings.SplitSeq(manifest, "\n---") {
			if strings.Contains(document, "Secret") {
				some.WriteString("\n---\n" + strings.TrimPrefix(document, "---"))
			}
		}
	}
	objects, _ := ParseManifest(some.String())
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().GroupKind() != schema.GroupKind{Kind: "Secret"}
	})
}

func (r *Record) unreadable(err error) error {
	return &Fault{Kind: Damaged, Secret: r.Namespace + "/" + r.SecretName, Err: err}
}

// Run returns the progress of a hook, nil if it wasn't started.
func (s *State) Run(hook HookKey) *HookRun {
	i := slices.IndexFunc(s.Hooks, func(h HookRun) bool { return h.HookKey == hook })
	if i < 0 {
		return nil
	}
	return &s.Hooks[i]
}

// JobDone returns the entry of a Job that ran to its end; false if it didn't yet.
func (s *State) JobDone(key ObjectKey) (Entry, bool) {
	i := slices.IndexFunc(s.JobsDone, func(e Entry) bool { return e.Key() == key })
	if i < 0 {
		return Entry{}, false
	}
	return s.JobsDone[i], true
}

// SameValues reports whether values are the same in a record, which has them as JSON. None are the same as an empty map.
func SameValues(a, b map[string]any) bool {
	return len(a)+len(b) == 0 || reflect.DeepEqual(stored(a), stored(b))
}

// stored returns values as they are read from a record.
func stored(values map[string]any) (is map[string]any) {
	text, err := json.Marshal(values)
	if err != nil || json.Unmarshal(text, &is) != nil {
		return values // which equals nothing that is stored
	}
	return is
}
