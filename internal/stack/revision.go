// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Content is the spec of an AddonStack as the API server serves it, with its versions
// pinned, in canonical JSON, for a revision to keep. Fields that this version of the
// program doesn't know are in it: an older and a newer one make the same revision.
func Content(served *unstructured.Unstructured, pins Pins) ([]byte, error) {
	spec, ok := runtime.DeepCopyJSONValue(served.Object["spec"]).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("AddonStack %s has no spec", served.GetName())
	}
	if err := pins.intoServed(spec); err != nil {
		return nil, fmt.Errorf("AddonStack %s: %w", served.GetName(), err)
	}
	content, err := json.Marshal(spec) // maps are sorted by key
	if err != nil {
		return nil, fmt.Errorf("spec of AddonStack %s: %w", served.GetName(), err)
	}
	return content, nil
}

// Snapshot returns the revision that keeps the content, with the given number.
// Equal contents have equal names: several instances that make a revision of one
// spec make the same.
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

// Keeps says whether the revision's content is this one.
func Keeps(revision *appsv1.ControllerRevision, content []byte) bool {
	var kept any
	if err := utiljson.Unmarshal(revision.Data.Raw, &kept); err != nil {
		return false
	}
	canonical, err := json.Marshal(kept)
	return err == nil && bytes.Equal(canonical, content)
}

// IsOf says whether the revision was made from the stack as it is now, with these
// pins, as far as this version of the program can tell without a request. The spec is
// compared, too: another version of the API can change it without a new generation.
func IsOf(revision *appsv1.ControllerRevision, stack *addonsv1.AddonStack, pins Pins) bool {
	if Generation(revision) != stack.Generation {
		return false
	}
	kept, err := SpecOf(revision)
	if err != nil {
		return false
	}
	pinned := pins.Into(&stack.Spec)
	if equality.Semantic.DeepEqual(kept, pinned) {
		return true
	}
	// Values may be written in more than one way.
	spec, err := json.Marshal(pinned)
	if err != nil {
		return false
	}
	was, err := json.Marshal(kept)
	if err != nil {
		return false
	}
	return equalJSON(was, spec)
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return utiljson.Unmarshal(a, &x) == nil && utiljson.Unmarshal(b, &y) == nil && equality.Semantic.DeepEqual(x, y)
}

// Generation is the newest generation of the stack that the revision was made from.
func Generation(revision *appsv1.ControllerRevision) int64 {
	generation, err := strconv.ParseInt(revision.Annotations[addonsv1.StackGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// SetGeneration says that the stack's spec was the revision's at this generation.
func SetGeneration(revision *appsv1.ControllerRevision, generation int64) {
	metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.StackGenerationAnnotation, strconv.FormatInt(generation, 10))
}

// SpecOf returns the spec that a revision keeps.
func SpecOf(revision *appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	spec := &addonsv1.AddonStackSpec{}
	if err := json.Unmarshal(revision.Data.Raw, spec); err != nil {
		return nil, fmt.Errorf("data of ControllerRevision %s: %w", revision.Name, err)
	}
	return spec, nil
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
