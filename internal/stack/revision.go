// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kjson "sigs.k8s.io/json"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
)

// Content returns the spec of an AddonStack as the API server serves it, for a revision to keep, with
// the differences between written and pinned, and the digests of inputs. It is canonical JSON. Fields that this version of
// the program doesn't know are in it: an older and a newer version make the same revision.
func Content(served *unstructured.Unstructured, written, pinned *addonsv1.AddonStackSpec, inputs Inputs) ([]byte, error) {
	pins, err := changes.Between(written, pinned)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(served.Object["spec"])
	if err == nil {
		content, err = pins.Apply(content)
	}
	var spec map[string]any
	if err == nil {
		err = utiljson.Unmarshal(content, &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("spec of AddonStack %s: %w", served.GetName(), err)
	}
	if len(inputs) > 0 {
		spec[pinnedInputs] = inputs
	}
	return json.Marshal(spec) // maps are sorted by key
}

// Snapshot returns the revision that keeps the content, with the given number. Equal contents have
// equal names, so several instances make the same revision of one spec.
func Snapshot(stack *addonsv1.AddonStack, content []byte, number int64) *appsv1.ControllerRevision {
	sum := sha256.Sum256(content)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stack.Namespace,
			Name:      stack.Name + "-" + hex.EncodeToString(sum[:5]),
			Labels:    map[string]string{addonsv1.StackNameLabel: stack.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(stack, addonsv1.GroupVersion.WithKind("AddonStack")),
			},
		},
		Data:     runtime.RawExtension{Raw: content},
		Revision: number,
	}
	SetGeneration(revision, stack.Generation)
	SyncLabel(revision, stack)
	return revision
}

// SyncLabel carries the stack's watch label over to a revision.
func SyncLabel(revision *appsv1.ControllerRevision, stack *addonsv1.AddonStack) (changed bool) {
	was, had := revision.Labels[clusterv1.WatchLabel]
	is, has := stack.Labels[clusterv1.WatchLabel]
	if has == had && is == was {
		return false
	}
	if has {
		metav1.SetMetaDataLabel(&revision.ObjectMeta, clusterv1.WatchLabel, is)
	} else {
		delete(revision.Labels, clusterv1.WatchLabel)
	}
	return true
}

// Keeps reports whether the revision's content is this one.
func Keeps(revision *appsv1.ControllerRevision, content []byte) bool {
	return equalJSON(revision.Data.Raw, content)
}

// IsOf reports whether the revision was made from the stack as it is now, with these pins and inputs. The spec is
// compared, too: another version of the API can change it without a new generation.
func IsOf(revision *appsv1.ControllerRevision, stack *addonsv1.AddonStack, pins Pins, inputs Inputs) bool {
	if Generation(revision) != stack.Generation {
		return false
	}
	kept, err := SpecOf(revision)
	if err != nil {
		return false
	}
	if had, err := InputsOf(revision); err != nil || !maps.Equal(had, inputs) {
		return false
	}
	pinned := pins.Into(&stack.Spec)
	if equality.Semantic.DeepEqual(kept, pinned) {
		return true
	}
	// Values may be written in more than one way.
	was, err := json.Marshal(kept)
	is, other := json.Marshal(pinned)
	return err == nil && other == nil && equalJSON(was, is)
}

// Written returns the first of the revisions, the newest one, or if that doesn't keep the spec, one without a name that does.
// A change of how revisions are taken or rolled out makes none.
func Written(served *unstructured.Unstructured, stack *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if len(revisions) == 0 {
		return &appsv1.ControllerRevision{}, nil
	}
	newest := &revisions[0]
	kept, err := SpecOf(newest)
	inputs, other := InputsOf(newest)
	if err = errors.Join(err, other); err != nil || Generation(newest) == stack.Generation {
		return newest, err
	}
	content, err := Content(served, &stack.Spec, PinsOf(&stack.Spec, kept).Into(&stack.Spec), inputs)
	if err != nil || Keeps(newest, content) {
		return newest, err
	}
	return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: content}}, nil
}

// Policies are fields of a spec that count as they are written now. They are no content of a revision. Earlier programs
// kept them in one, so they are dropped from what is read, and don't count when contents are compared.
var Policies = []string{"deletionPolicy", "removalLimit", "allowedRemovals"}

func dropPolicies(spec *addonsv1.AddonStackSpec) {
	spec.DeletionPolicy, spec.RemovalLimit, spec.AllowedRemovals = "", nil, nil
}

func equalJSON(a, b []byte) bool {
	var x, y map[string]any
	if utiljson.Unmarshal(a, &x) != nil || utiljson.Unmarshal(b, &y) != nil {
		return false
	}
	for _, field := range Policies {
		delete(x, field)
		delete(y, field)
	}
	return equality.Semantic.DeepEqual(x, y)
}

// Generation returns the newest generation of the stack that the revision was made from.
func Generation(revision *appsv1.ControllerRevision) int64 {
	generation, err := strconv.ParseInt(revision.Annotations[addonsv1.StackGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// SetGeneration notes that the stack's spec was the revision's at this generation.
func SetGeneration(revision *appsv1.ControllerRevision, generation int64) {
	metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.StackGenerationAnnotation, strconv.FormatInt(generation, 10))
}

// SpecOf returns the spec that a revision keeps.
func SpecOf(revision *appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	spec, _, err := Read(revision)
	return spec, err
}

// NewestSpec returns the spec that the first of the revisions keeps, an empty one if there is none.
func NewestSpec(revisions []appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	if len(revisions) == 0 {
		return &addonsv1.AddonStackSpec{}, nil
	}
	return SpecOf(&revisions[0])
}

// SpecAt returns the spec that the revision of a name keeps; nil if it isn't there, or can't be read.
func SpecAt(revisions []appsv1.ControllerRevision, name string) *addonsv1.AddonStackSpec {
	at := slices.IndexFunc(revisions, func(r appsv1.ControllerRevision) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	spec, err := SpecOf(&revisions[at])
	if err != nil {
		return nil
	}
	return spec
}

// Read returns the spec that a revision keeps, without [Policies], and the fields of it that this program doesn't know, as in
// "spec.addons[0].tomorrow". A spec with such fields isn't to be used: nobody here knows which of them restrict it.
func Read(revision *appsv1.ControllerRevision) (spec *addonsv1.AddonStackSpec, unknown []string, err error) {
	if spec, unknown, err = decode(revision.Data.Raw); err != nil {
		return nil, nil, fmt.Errorf("data of ControllerRevision %s: %w", revision.Name, err)
	}
	return spec, unknown, nil
}

// Unknown returns the fields of an AddonStack's spec, as the API server serves it, that this program doesn't know.
func Unknown(served *unstructured.Unstructured) ([]string, error) {
	content, err := json.Marshal(served.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("spec of AddonStack %s: %w", served.GetName(), err)
	}
	_, unknown, err := decode(content)
	return unknown, err
}

func decode(content []byte) (*addonsv1.AddonStackSpec, []string, error) {
	is := &kept{}
	strict, err := kjson.UnmarshalStrict(content, is, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, nil, err
	}
	var unknown []string
	for _, err := range strict {
		if field, ok := errors.AsType[kjson.FieldError](err); ok {
			unknown = append(unknown, "spec."+field.FieldPath())
		}
	}
	dropPolicies(&is.AddonStackSpec)
	return &is.AddonStackSpec, unknown, nil
}

// OwnRevisions returns the stack's revisions, the newest first. The generation
// decides: it never goes back, and several instances that write agree on it.
func OwnRevisions(stack *addonsv1.AddonStack, all []appsv1.ControllerRevision) []appsv1.ControllerRevision {
	var own []appsv1.ControllerRevision
	for i := range all {
		if metav1.IsControlledBy(&all[i], stack) {
			own = append(own, all[i])
		}
	}
	slices.SortFunc(own, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(
			cmp.Compare(Generation(&b), Generation(&a)),
			cmp.Compare(b.Revision, a.Revision),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return own
}

// Assigned returns the entry of a stack in those that a cluster is to run, zero if there is none.
func Assigned(assigned []addonsv1.StackRevision, name string) addonsv1.StackRevision {
	at := slices.IndexFunc(assigned, func(s addonsv1.StackRevision) bool { return s.Name == name })
	if at < 0 {
		return addonsv1.StackRevision{}
	}
	return assigned[at]
}

// IsAssigned reports whether a stack is assigned.
func IsAssigned(assigned []addonsv1.StackRevision, name string) bool {
	return Assigned(assigned, name).Name != ""
}

// AssignedRevision returns the revision of a stack that a cluster is to run, "" if there is none.
func AssignedRevision(assigned []addonsv1.StackRevision, name string) string {
	return Assigned(assigned, name).Revision
}
