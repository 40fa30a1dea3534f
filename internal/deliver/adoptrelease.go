// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// A release of another name, or with its record in another namespace, is taken over as one of
// the add-on's own name is: the first revision begins with its objects. Its record is deleted when
// that revision has them all, as `helm uninstall` would delete them by it.

// adoptedRelease is the release of Helm that an add-on takes over.
type adoptedRelease struct{ *call }

// inheritRelease returns the objects of the release that the add-on is to take over, nil if
// there is none. Only an add-on without a record of its own asks.
func (r adoptedRelease) inheritRelease(ctx context.Context) ([]record.Entry, error) {
	if r.want.AdoptRelease == (Release{}) || r.want.Adoption != addonsv1.AdoptionPolicyAdopt {
		return nil, nil
	}
	store := r.previousStore(r.want.AdoptRelease)
	records, _, err := store.List(ctx)
	if err != nil || len(records) == 0 || records[0].Status == string(helmcommon.StatusUninstalled) {
		return nil, err
	}
	newest := records[0]
	switch {
	case newest.Owned:
		return nil, r.refuse(ReasonReleaseOwnedByOther, fmt.Sprintf(
			"adoptRelease names %s, which is an add-on of ClusterAddon %s. Take it out of its stack with deletionPolicy Orphan first",
			newest.Release, newest.Owner))
	case isLocked(newest, r.want, r.now()):
		return nil, r.refuse(ReasonReleaseLocked, fmt.Sprintf(
			"Helm is working on release %s, which adoptRelease names: its revision %d is %s", newest.Release, newest.Revision, newest.Status))
	}
	rec, err := store.Load(ctx, newest)
	if err != nil {
		return nil, err
	}
	if rec.Helm.Namespace != r.release.Namespace {
		return nil, r.refuse(ReasonReleaseExists, fmt.Sprintf(
			"The release that adoptRelease names, %s, has its objects in namespace %q. Set the add-on's namespace to that",
			newest.Release, rec.Helm.Namespace))
	}
	r.adopted = &record.AdoptedRelease{Name: r.want.AdoptRelease.Name, StorageNamespace: r.want.AdoptRelease.Namespace}
	return r.scope.InventoryOf(rec)
}

// retireAdopted deletes the records of the release that was taken over.
func (r adoptedRelease) retireAdopted(ctx context.Context) error {
	adopted := r.rec.State.Adopted
	if adopted == nil {
		return nil
	}
	store := r.previousStore(Release{Namespace: adopted.StorageNamespace, Name: adopted.Name})
	records, _, err := store.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range records {
		if s.Owned {
			continue
		}
		if err := store.Delete(ctx, s.SecretName); err != nil {
			return err
		}
	}
	r.rec.State.Adopted = nil // which is written with the end of the revision
	return nil
}

// previousStore has the records of the release that is taken over. They are read and deleted with
// the rights that the add-on's objects are written with.
func (r adoptedRelease) previousStore(release Release) *record.Store {
	store := r.d.storeOf(r.t, release)
	store.Client = r.t.Client
	return store
}
