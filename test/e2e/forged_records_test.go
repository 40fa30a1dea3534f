// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// mallory is a user of a workload cluster who may do anything with the Secrets of one namespace, and nothing else.
type mallory struct {
	client.Client
	t    *testing.T
	s    *server
	name string
}

func newMallory(t *testing.T, s *server, namespace string) *mallory {
	t.Helper()
	m := &mallory{t: t, s: s, name: "mallory-" + namespace}
	known, err := s.AddUser(m.name)
	must.Succeed(t, err)
	s.grant(t, namespace, "mallory", user(m.name), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: everyVerb})
	m.Client = clientFor(t, known.Kubeconfig)
	poll(t, patience, "the API server is to know the Role", func() error {
		return m.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))
	})
	return m
}

func (m *mallory) store(release record.Release) *record.Store {
	return &record.Store{Client: m, Writer: m, Release: release, Clock: clock.RealClock{}, FieldManager: "mallory"}
}

// rights returns the manifest of a ClusterRoleBinding that would make mallory the cluster's admin.
func (m *mallory) rights() string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]\n", m.name, m.name)
}

func (m *mallory) hook(events ...helmrelease.HookEvent) *helmrelease.Hook {
	return &helmrelease.Hook{Name: m.name, Kind: "ClusterRoleBinding", Path: "evil/templates/a.yaml", Manifest: m.rights(), Events: events}
}

// expectNoRights fails the test if mallory got what the forged record asks for.
func (m *mallory) expectNoRights() {
	m.t.Helper()
	err := m.s.Get(m.t.Context(), client.ObjectKey{Name: m.name}, &rbacv1.ClusterRoleBinding{})
	if !apierrors.IsNotFound(err) {
		m.t.Errorf("reading mallory's ClusterRoleBinding: %v; it isn't to be made", err)
	}
	if err := m.List(m.t.Context(), &rbacv1.ClusterRoleBindingList{}); !apierrors.IsForbidden(err) {
		m.t.Errorf("listing ClusterRoleBindings as mallory: %v", err)
	}
}

// forge returns a record of a release that was never there, whose removal seems to have begun.
func (m *mallory) forge(release record.Release, owner, account string) *record.Record {
	return &record.Record{
		Summary: record.Summary{
			Release: release, Revision: 1, Status: string(helmcommon.StatusUninstalling), Digest: "sha256:1",
			Owner: owner, Terms: record.Terms{Stack: "platform", DeletionPolicy: addonsv1.DeletionPolicyDelete, ServiceAccount: account},
		},
		Helm: &helmrelease.Release{
			Name: release.Name, Namespace: release.Namespace, Version: 1,
			Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "evil", Version: "1.0.0"}},
			Info:  &helmrelease.Info{Status: helmcommon.StatusUninstalling}, Hooks: []*helmrelease.Hook{m.hook(helmrelease.HookPreDelete)},
		},
		State: &record.State{Format: 1},
	}
}

// lookAgain has the manager look at a cluster from the start.
func (tn *tenant) lookAgain(cluster, mark string, checks ...clusterCheck) {
	tn.t.Helper()
	change(tn, tn.clusterAddon(cluster), func(ca *addonsv1.ClusterAddon) {
		metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.ReconcileNowAnnotation, mark)
	})
	tn.awaitCluster(cluster, "it is looked at again", append(checks, func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.LastReconcileNow != mark {
			return errors.New("it wasn't yet")
		}
		return nil
	})...)
}

// TestForgedRecordElsewhere has mallory make the record of a half removed release in a namespace that has nothing
// to do with Chandler.
func TestForgedRecordElsewhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags            []string
		account, claimed string // of the stack, and in the record
	}{
		"with the kubeconfig's rights": {},
		"with a ServiceAccount":        {account: "deployer", claimed: "deployer"},
		"without one in the record":    {account: "deployer"},
		"with required accounts":       {flags: []string{"--require-impersonation"}, account: "deployer", claimed: "deployer"},
		"without the required account": {flags: []string{"--require-impersonation"}, account: "deployer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn, s, g := newTenant(t), workloadServer(t, 1), NewWithT(t)
			s.createNamespace(t, tn.namespace)
			allowDeployer(t, s, tn.namespace)
			tn.makeCluster("prod", s, nil)
			tn.startManager(tc.flags...)
			stack := tn.newStack("platform", nil, tn.small("settings"))
			stack.Spec.ServiceAccountName = tc.account
			tn.create(stack)
			tn.awaitCluster("prod", "it is installed", ready("settings"))

			corner := record.Release{Namespace: tn.namespace + "-corner", Name: "evil"}
			s.createNamespace(t, corner.Namespace)
			m := newMallory(t, s, corner.Namespace)
			forged := m.forge(corner, tn.namespace+"/prod", tc.claimed)
			forged.Seal("")
			g.Expect(m.store(corner).Create(t.Context(), forged)).To(Succeed())
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: corner.Namespace, Name: forged.SecretName}}
			left := func(ca *addonsv1.ClusterAddon) error {
				for _, check := range []clusterCheck{
					phase("evil", addonsv1.AddonUnassigned, "StackUnknown", corner.Namespace), deliveredAs("evil", ""), phase("settings", addonsv1.AddonReady, "", ""),
				} {
					if err := check(ca); err != nil {
						return err
					}
				}
				return nil
			}
			tn.awaitCluster("prod", "it is left, and people are told", left)
			tn.lookAgain("prod", "once more", left)
			changeOn(t, s, secret, func(o *corev1.Secret) { o.Annotations["poke"] = "x" })
			tn.lookAgain("prod", "after an event of the record", left)
			tn.awaitReady("platform", "the forged one is no part of the stack, nor holds up its rollouts")
			m.expectNoRights()

			ca := tn.clusterAddon("prod")
			g.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca)).To(Succeed())
			previous := ca.UID
			tn.remove(ca) // as after a move, no status is left
			tn.awaitCluster("prod", "a new ClusterAddon leaves it, too", left, func(ca *addonsv1.ClusterAddon) error {
				if ca.UID == previous {
					return errors.New("it is the ClusterAddon before")
				}
				return nil
			})
			tn.lookAgain("prod", "twice", left)
			m.expectNoRights()
			was := secret.ResourceVersion
			g.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(secret.ResourceVersion).To(Equal(was), "the record itself is left as it is")
			g.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}), "and nothing that is wanted was touched")
		})
	}
}

// TestEditedRecord has mallory change the record of an add-on that is installed.
func TestEditedRecord(t *testing.T) {
	t.Parallel()
	for name, account := range map[string]string{"with the kubeconfig's rights": "", "with a ServiceAccount": "deployer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn, s := newProd(t, 1)
			s.createNamespace(t, tn.namespace)
			allowDeployer(t, s, tn.namespace)
			stack := tn.newStack("platform", nil, tn.small("settings"), tn.small("other"))
			stack.Spec.ServiceAccountName = account
			tn.create(stack)
			tn.awaitCluster("prod", "it is installed", ready("settings", "other"))
			m := newMallory(t, s, tn.namespace)
			copied := tn.configMapOf("copied")
			copied.Labels = map[string]string{addonsv1.AddonLabel: "settings", addonsv1.AddonNamespaceLabel: tn.namespace}
			must.Succeed(t, s.Create(t.Context(), copied))
			edit := func(t *testing.T, addon string, mutate func(*record.Record)) {
				t.Helper()
				store := m.store(record.Release{Namespace: tn.namespace, Name: addon})
				err := retryOnConflict(func() error {
					rec, err := store.Newest(t.Context())
					if err != nil || rec == nil {
						return errors.Join(err, errors.New("no record"))
					}
					mutate(rec)
					return store.Update(t.Context(), rec)
				})
				must.Succeed(t, err)
			}
			add := func(rec *record.Record) {
				rec.Helm.Manifest += "---\n" + m.rights()
				rec.Helm.Hooks = append(rec.Helm.Hooks, m.hook(helmrelease.HookPreDelete, helmrelease.HookPreUpgrade))
				rec.State.Inventory = append(rec.State.Inventory, record.Entry{
					Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding", Name: m.name, UID: "1", Fields: 1,
				}, record.Entry{Version: "v1", Kind: "ConfigMap", Namespace: copied.Namespace, Name: copied.Name, UID: copied.UID})
			}

			t.Run("its data, and what has it compared", func(t *testing.T) {
				edit(t, "settings", func(rec *record.Record) { add(rec); rec.Applied = "" })
				tn.in(t).awaitCluster("prod", "it is rendered again", installedAs("settings", 2, "1.0.0"))
				m.expectNoRights()
			})
			t.Run("its data, and an object goes", func(t *testing.T) {
				edit(t, "settings", add)
				must.Succeed(t, s.Delete(t.Context(), tn.configMapOf("settings")))
				tn.in(t).awaitCluster("prod", "it is rendered again", installedAs("settings", 3, "1.0.0"))
				await(t, s, tn.configMapOf("settings"), patience, "the object is made again", exists)
				m.expectNoRights()
			})
			t.Run("all, with digests that fit", func(t *testing.T) {
				edit(t, "settings", func(rec *record.Record) { add(rec); rec.Seal(rec.State.Salt) })
				tn.in(t).awaitCluster("prod", "it is rendered again", installedAs("settings", 4, "1.0.0"))
				m.expectNoRights()
				NewWithT(t).Expect(s.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(Succeed(), "labels and an inventory make nobody an owner")
			})
			t.Run("its status", func(t *testing.T) {
				edit(t, "settings", func(rec *record.Record) {
					add(rec)
					rec.SetStatus(helmcommon.StatusPendingUpgrade, "")
				})
				tn.in(t).awaitCluster("prod", "it is rendered again", installedAs("settings", 5, "1.0.0"))
				m.expectNoRights()
			})
			tn.run("what is wanted no more, unseen", func(t *testing.T, tn *tenant) {
				edit(t, "other", add)
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
				tn.awaitCluster("prod", "it is left", phase("other", addonsv1.AddonUnassigned, "StackUnknown", ""))
				tn.lookAgain("prod", "once more", phase("other", addonsv1.AddonUnassigned, "StackUnknown", ""))
				m.expectNoRights()
				if err := s.Get(t.Context(), client.ObjectKeyFromObject(tn.configMapOf("other")), tn.configMapOf("other")); err != nil {
					t.Errorf("its object: %v", err)
				}
			})
			tn.run("what is left goes once it is wanted again and proven", func(t *testing.T, tn *tenant) {
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, tn.small("other")) })
				tn.awaitCluster("prod", "it is rendered again", installedAs("other", 2, "1.0.0"))
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
				tn.expectRemoved(t, s, "other")
				m.expectNoRights()
			})
		})
	}
}

// TestForgedChart has mallory write the digest of another chart of the same repository into the record of an
// add-on, with all that shows which version it is of. It is another chart than the one that is wanted.
func TestForgedChart(t *testing.T) {
	t.Parallel()
	tn, s, g := newTenant(t), workloadServer(t, 1), NewWithT(t)
	s.createNamespace(t, tn.namespace)
	m := newMallory(t, s, tn.namespace)
	origin := registry.Start(t, registry.Options{})
	credentials := trusting(t, origin.CA)
	origin.Push(t, configMapChart.archive("settings", "1.0.0"), "charts/settings", "1.0.0")
	evil := origin.Push(t, chart{"templates/a.yaml": m.rights()}.archive("settings", "1.0.0"), "charts/settings", "0.1.0-evil")
	tn.makeCluster("prod", s, nil)
	tn.startManager("--credentials-dir=" + credentials)
	tn.makeStack("platform", nil, tn.addon("settings", "", fromOCI(origin.URL("charts/settings"), "1.0.0")))
	tn.awaitCluster("prod", "it is installed", installedAs("settings", 1, "1.0.0"))
	forge := func() {
		t.Helper()
		store := m.store(record.Release{Namespace: tn.namespace, Name: "settings"})
		g.Expect(retryOnConflict(func() error {
			rec, err := store.Newest(t.Context())
			if err != nil {
				return err
			}
			g.Expect(rec.ArtifactVersion).NotTo(BeEmpty(), "what the digest is of is in the record")
			rec.Artifact, rec.Digest = evil, "sha256:1"
			rec.Seal(rec.State.Salt)
			return store.Update(t.Context(), rec)
		})).To(Succeed())
	}
	forge()
	tn.awaitCluster("prod", "the chart that is wanted is rendered again", installedAs("settings", 2, "1.0.0"))
	m.expectNoRights()

	tn.stopManager()
	forge()
	tn.remove(tn.clusterAddon("prod")) // as after a move, no status is left
	tn.startManager("--credentials-dir=" + credentials)
	tn.awaitCluster("prod", "it is rendered again without a status, too", installedAs("settings", 3, "1.0.0"))
	m.expectNoRights()
}
