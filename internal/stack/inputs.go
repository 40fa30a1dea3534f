// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Inputs are the digests of the values that a revision was made with, by "kind/name/key". Values that weren't there have
// the digest "".
type Inputs map[string]string

// kept is the data of a revision.
type kept struct {
	addonsv1.AddonStackSpec `json:",inline"`
	// PinnedInputs are no field of a spec, so nobody can write them into an AddonStack.
	PinnedInputs Inputs `json:"pinnedInputs,omitempty"`
}

// pinnedInputs is the name of the field.
const pinnedInputs = "pinnedInputs"

// StagedSources returns the references of which a revision pins the values, by "kind/name/key": none without a rollout.
func StagedSources(spec *addonsv1.AddonStackSpec) map[string]addonsv1.ValuesReference {
	staged := map[string]addonsv1.ValuesReference{}
	if spec.Rollout == nil {
		return staged
	}
	for i := range spec.Addons {
		for _, ref := range spec.Addons[i].ValuesFrom {
			if IsStaged(ref) {
				staged[ValuesName(ref)] = ref
			}
		}
	}
	return staged
}

// InputsOf returns the digests that a revision pins, none if it was made without a rollout.
func InputsOf(revision *appsv1.ControllerRevision) (Inputs, error) {
	if !bytes.Contains(revision.Data.Raw, []byte(pinnedInputs)) { // mostly
		return nil, nil
	}
	is := struct {
		PinnedInputs Inputs `json:"pinnedInputs"`
	}{}
	if err := json.Unmarshal(revision.Data.Raw, &is); err != nil {
		return nil, fmt.Errorf("data of ControllerRevision %s: %w", revision.Name, err)
	}
	return is.PinnedInputs, nil
}

// ValuesKey returns the key of an object that a reference means.
func ValuesKey(ref addonsv1.ValuesReference) string {
	return cmp.Or(ref.Key, addonsv1.DefaultValuesKey)
}

// ValuesName returns "kind/name/key".
func ValuesName(ref addonsv1.ValuesReference) string {
	return ref.Kind + "/" + ref.Name + "/" + ValuesKey(ref)
}

// ValuesNamed returns the reference that has a name; false if none has.
func ValuesNamed(name string) (addonsv1.ValuesReference, bool) {
	parts := strings.Split(name, "/") // which neither kinds, nor names, nor keys have
	if len(parts) != 3 {
		return addonsv1.ValuesReference{}, false
	}
	return addonsv1.ValuesReference{Kind: parts[0], Name: parts[1], Key: parts[2]}, true
}

// IsStaged reports whether a change of the values waits for its turn in a rollout. An object whose name is a template is
// another one for each cluster, so no revision can pin it.
func IsStaged(ref addonsv1.ValuesReference) bool {
	return ptr.Deref(ref.Staged, true) && !strings.Contains(ref.Name, "{{")
}
