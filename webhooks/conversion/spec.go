// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// maxAddons is what v1beta1 allows. Its rules aren't asked when v1alpha1 writes.
const maxAddons = 64

// specToSpoke shows the first add-on.
func specToSpoke(hub *addonsv1.AddonStackSpec) addonsv1alpha1.AddonStackSpec {
	spoke := addonsv1alpha1.AddonStackSpec{
		ClusterSelector: hub.ClusterSelector,
		ClassNames:      hub.ClassNames,
		DeletionPolicy:  addonsv1alpha1.DeletionPolicy(hub.DeletionPolicy),
	}
	if len(hub.Addons) > 0 {
		showAddon(&spoke, &hub.Addons[0])
	}
	return spoke
}

// editSpec writes into the hub what v1alpha1 can hold, and nothing else.
func editSpec(hub *addonsv1.AddonStackSpec, spoke *addonsv1alpha1.AddonStackSpec) error {
	hub.ClusterSelector = spoke.ClusterSelector
	hub.ClassNames = spoke.ClassNames
	hub.DeletionPolicy = addonsv1.DeletionPolicy(spoke.DeletionPolicy)

	none := len(hub.Addons) == 0
	addons, err := bringToFront(hub.Addons, spoke.ReleaseName)
	if err != nil {
		return err
	}
	editAddon(&addons[0], spoke)
	// The API server also converts objects of which it took all fields away.
	if none && equality.Semantic.DeepEqual(addons[0], addonsv1.Addon{}) {
		addons = []addonsv1.Addon{}
	}
	hub.Addons = addons
	return nil
}

// bringToFront returns the add-ons with the one of a release first, which is the one that v1alpha1
// shows. A release that isn't there takes the place of the only add-on, or comes before several.
func bringToFront(addons []addonsv1.Addon, release string) ([]addonsv1.Addon, error) {
	i := slices.IndexFunc(addons, func(a addonsv1.Addon) bool { return a.Name == release })
	switch {
	case i >= 0:
		named := addons[i]
		return slices.Insert(slices.Delete(addons, i, i+1), 0, named), nil
	case len(addons) == 0:
		return []addonsv1.Addon{{Name: release}}, nil
	case release == "":
		return addons, nil
	case len(addons) == 1:
		addons[0].Name = release
		return addons, nil
	case len(addons) >= maxAddons:
		return nil, fmt.Errorf("spec.releaseName: no add-on is named %q, and the stack has %d already, which v1beta1 shows", release, len(addons))
	}
	return slices.Insert(addons, 0, addonsv1.Addon{Name: release}), nil
}
