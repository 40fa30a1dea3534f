// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// rightsFor returns the manifest of a ClusterRoleBinding that no add-on has.
func rightsFor(name string) string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]\n", name)
}

func hookFor(name string) *helmrelease.Hook {
	return &helmrelease.Hook{
		Name: name, Kind: "ClusterRoleBinding", Path: "evil/templates/a.yaml", Manifest: rightsFor(name),
		Events: []helmrelease.HookEvent{helmrelease.HookPreDelete, helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade},
	}
}

// recordsOf reads and writes the records of a release as somebody who may write Secrets.
func (tm *team) recordsOf(namespace, release string) *record.Store {
	return &record.Store{
		Client: tm.workload, Writer: tm.workload, Release: record.Release{Namespace: namespace, Name: release}, Clock: clock.RealClock{}, FieldManager: "mallory",
	}
}

// forge has the record of a release say that something was applied that no chart has.
func (tm *team) forge(release string, more func(*record.Record)) {
	tm.t.Helper()
	store := tm.recordsOf(tm.namespace, release)
	NewWithT(tm.t).Eventually(func() error {
		rec, err := store.Newest(tm.t.Context())
		if err != nil {
			return err
		}
		rec.Helm.Manifest += "---\n" + rightsFor(tm.namespace)
		rec.Helm.Hooks = append(rec.Helm.Hooks, hookFor(tm.namespace))
		rec.State.Inventory = append(rec.State.Inventory, record.Entry{
			Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding", Name: tm.namespace, UID: "1", Fields: 1,
		})
		more(rec)
		rec.Seal(rec.State.Salt)
		return store.Update(tm.t.Context(), rec)
	}).Should(Succeed())
}

// touched are the objects that a user created or changed since a moment, but for the records of the add-ons' own namespace.
func (tm *team) touched(since time.Time) sets.Set[string] {
	tm.t.Helper()
	all := sets.New[string]()
	for _, e := range tm.workload.requests(tm.t, tm.user(), since) {
		if isWrite(e) && !isRecord(e, tm.namespace) {
			all.Insert(fmt.Sprintf("%s %s/%s", e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name))
		}
	}
	return all
}

func isWrite(e audit.Event) bool { return len(writes([]audit.Event{e})) > 0 && e.ObjectRef != nil }

func isRecord(e audit.Event, namespace string) bool {
	return e.ObjectRef.Resource == "secrets" && e.ObjectRef.Namespace == namespace && (e.ObjectRef.Name == "" || strings.HasPrefix(e.ObjectRef.Name, "sh.helm.release.v1."))
}

// TestMoveWithForgedRecords moves a Cluster after somebody has edited the records of its add-ons, and made one of a
// removal that is under way elsewhere. The other management cluster has no proof of any. It writes to nothing but
// what the add-ons have, and renders these again.
func TestMoveWithForgedRecords(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tm, g := newTeam(t), NewWithT(t)
	begin := time.Now()
	tm.makeCluster(tm.here)
	tm.makeStack(tm.here)
	here := tm.run(tm.here)
	tm.await(tm.here, "all is installed", ready("settings", "vault", "web"))
	here.AwaitRest()
	own, password := tm.touched(begin), tm.secrets()
	g.Expect(own).NotTo(BeEmpty())
	here.Stop(t)

	corner := tm.namespace + "-corner"
	tm.create(tm.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corner}})
	removal := &record.Record{
		Summary: record.Summary{
			Release: record.Release{Namespace: corner, Name: "evil"}, Revision: 1, Status: string(helmcommon.StatusUninstalling), Digest: "sha256:1",
			Owner: tm.namespace + "/" + clusterName, Terms: record.Terms{Stack: "platform", DeletionPolicy: addonsv1.DeletionPolicyDelete},
		},
		Helm: &helmrelease.Release{
			Name: "evil", Namespace: corner, Version: 1, Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "evil", Version: "1.0.0"}},
			Info: &helmrelease.Info{Status: helmcommon.StatusUninstalling}, Hooks: []*helmrelease.Hook{hookFor(tm.namespace)},
		},
		State: &record.State{Format: 1},
	}
	removal.Seal("")
	g.Expect(tm.recordsOf(corner, "evil").Create(t.Context(), removal)).To(Succeed())
	tm.forge("settings", func(rec *record.Record) { rec.Artifact = "sha256:" + strings.Repeat("1", 64) })
	tm.forge("vault", func(rec *record.Record) { rec.Applied = "" })
	tm.forge("web", func(rec *record.Record) { rec.SetStatus(helmcommon.StatusPendingUpgrade, "") })
	start := time.Now()

	tm.move(tm.here)
	there := tm.run(tm.there)
	tm.await(tm.there, "all is rendered again", func(ca *addonsv1.ClusterAddon) error {
		for _, name := range []string{"settings", "vault", "web"} {
			if err := phase(name, addonsv1.AddonReady, "")(ca); err != nil {
				return err
			}
		}
		return phase("evil", addonsv1.AddonUnassigned, corner)(ca)
	})
	there.AwaitRest()
	g.Expect(tm.touched(start).Difference(own).UnsortedList()).To(BeEmpty())
	binding := &rbacv1.ClusterRoleBinding{}
	g.Expect(apierrors.IsNotFound(tm.workload.Get(t.Context(), client.ObjectKey{Name: tm.namespace}, binding))).To(BeTrue(), "nobody got rights")
	g.Expect(tm.secrets()).To(Equal(password), "generated values stay")
	g.Expect(tm.releases()).To(And(HaveKeyWithValue("settings/2", "deployed"), HaveKeyWithValue("vault/2", "deployed"), HaveKeyWithValue("web/2", "deployed")))
}

// secrets are the Secrets of the add-ons, but for the records.
func (tm *team) secrets() map[string]map[string][]byte {
	tm.t.Helper()
	list := &corev1.SecretList{}
	must.Succeed(tm.t, tm.workload.List(tm.t.Context(), list, client.InNamespace(tm.namespace)))
	all := map[string]map[string][]byte{}
	for _, s := range list.Items {
		if s.Labels["owner"] != "helm" {
			all[s.Name] = s.Data
		}
	}
	return all
}
