// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// The assignment stays while nobody can say which revision is in force.
func TestAssignmentOutlivesWhatIsNotKnown(t *testing.T) {
	for name, do := range map[string]func(h *hub){
		"the newest revision has a field that this program doesn't know": func(h *hub) {
			h.stack.Spec.ClusterSelector.MatchLabels["env"] = "none"
			h.must(h.Update(h.Context(), h.stack))
			newest := h.revisionOf("platform-2", 2)
			newest.Data.Raw = bytes.Replace(newest.Data.Raw, []byte(`"addons"`), []byte(`"later":true,"addons"`), 1)
			h.must(h.Create(h.Context(), newest))
		},
		"the newest revision isn't there": func(h *hub) {
			change(h, &addonsv1.AddonStack{}, "platform", func(s *addonsv1.AddonStack) { s.Status.LatestRevision = "platform-2" })
			relabel(h, "prod-0")
		},
		"no revision is there, and the written selector isn't in force": func(h *hub) {
			change(h, &addonsv1.AddonStack{}, "platform", func(s *addonsv1.AddonStack) {
				s.Status.LatestRevision, s.Spec.ClusterSelector.MatchLabels["env"] = "platform-1", "none"
			})
			h.must(h.Delete(h.Context(), h.revision))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, "")
			do(h)
			h.expect("prod-0", "assigned")
			if got := stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "platform"); got != "platform-1" {
				t.Errorf("it runs %s", got)
			}
		})
	}
}

// A cluster is told that add-ons are left behind before their stack goes: the removal reads it there.
func TestOrphansAreToldFirst(t *testing.T) {
	for name, lacks := range map[string]func(*addonsv1.ClusterAddon){
		"its status is older":            func(ca *addonsv1.ClusterAddon) { ca.Status.ObservedGeneration = 0 },
		"its records say another policy": func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks[0].RecordedDeletionPolicy = "" },
		"its status is of a backup":      func(ca *addonsv1.ClusterAddon) { ca.Status.ObservedUID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, addonsv1.DeletionPolicyOrphan)
			told := h.clusterAddon("prod-0").Status
			change(h, &addonsv1.ClusterAddon{}, "prod-0", lacks)
			h.deleted(true)
			h.expect("prod-0", "assigned")
			change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Status = told })
			h.expect("prod-0", "gone")
		})
	}
}

// A ClusterAddon that was made again says what its cluster runs, before anything of that is removed: it counts.
func TestNewClusterAddonsReportFirst(t *testing.T) {
	h := newHub(t, 3, "")
	forget := func(name string) {
		change(h, &addonsv1.ClusterAddon{}, name, func(ca *addonsv1.ClusterAddon) {
			ca.CreationTimestamp, ca.Status = metav1.Now(), addonsv1.ClusterAddonStatus{}
		})
	}
	told := h.clusterAddon("prod-0").Status
	for _, name := range h.clusters {
		forget(name)
	}
	h.newRevision(otherAddon)
	h.expect("prod-0", "assigned")
	if is := h.clusterAddon("prod-0").Spec.Stacks; stack.AssignedRevision(is, "platform") != "platform-1" {
		t.Errorf("got %+v", is)
	}
	if again := h.reconcile("prod-0"); again <= 0 || again > candidate.FirstReport {
		t.Errorf("it may never report, and is looked at again after %s", again)
	}
	for _, name := range h.clusters {
		change(h, &addonsv1.ClusterAddon{}, name, func(ca *addonsv1.ClusterAddon) { ca.Status = told })
	}
	h.expect("prod-0", "held")
	if again := h.reconcile("prod-0"); again != 0 {
		t.Errorf("it has reported, and is looked at again after %s", again)
	}
}

// otherAddon puts another add-on in the place of the stack's.
func otherAddon(spec *addonsv1.AddonStackSpec) {
	spec.Addons = []addonsv1.Addon{{Name: "other", Namespace: "apps"}}
}

// newRevision has the stack change, and keeps that as its newest revision.
func (h *hub) newRevision(mutate func(*addonsv1.AddonStackSpec)) {
	h.Helper()
	mutate(&h.stack.Spec)
	h.must(h.Update(h.Context(), h.stack))
	h.must(h.Create(h.Context(), h.revisionOf("platform-2", 2)))
	h.isInForce()
}

// The rest of a change that is held was let go: an add-on of it that is seen later isn't held as well.
func TestWhatWasLetGoIsNotHeld(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(otherAddon)
	h.expect("prod-0", "held")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		late := ca.Status.Addons[0]
		late.Name = "late"
		ca.Status.Addons = append(ca.Status.Addons, late)
	})
	h.expect("prod-0", "held")
	is := h.clusterAddon("prod-0").Spec.Stacks
	if held := stack.Assigned(is, "platform").HeldRemoval; stack.AssignedRevision(is, "platform") != "platform-2" || held == nil || !slices.Equal(held.Addons, []string{"apps/web"}) {
		t.Errorf("got %+v, %+v", is, held)
	}
}

// Nobody knows for a moment what a stack is, and so whether a removal is held still: it is. Confirmations count afterwards.
func TestHeldRemovalOutlivesRevisions(t *testing.T) {
	for name, tc := range map[string]struct{ lose, find func(h *hub) }{
		"its revisions are gone": {
			lose: func(h *hub) {
				h.must(h.DeleteAllOf(h.Context(), &appsv1.ControllerRevision{}, client.InNamespace(team)))
			},
			find: func(h *hub) {
				h.must(h.Create(h.Context(), h.revisionOf("platform-2", 2)))
				h.isInForce()
			},
		},
		"its selector can't be read": {
			lose: func(h *hub) {
				change(h, &appsv1.ControllerRevision{}, "platform-2", func(r *appsv1.ControllerRevision) {
					r.Data.Raw = bytes.Replace(r.Data.Raw, []byte(`{"matchLabels":{"env":"prod"}}`), []byte(`{"matchExpressions":[{"key":"env","operator":"Near"}]}`), 1)
				})
			},
			find: func(h *hub) {
				change(h, &appsv1.ControllerRevision{}, "platform-2", func(r *appsv1.ControllerRevision) { r.Data = h.revisionOf("", 2).Data })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 3, "")
			h.newRevision(otherAddon)
			h.expect("prod-0", "held")
			is := h.clusterAddon("prod-0").Spec.Stacks
			tc.lose(h)
			h.expect("prod-0", "held")
			if diff := cmp.Diff(is, h.clusterAddon("prod-0").Spec.Stacks); diff != "" {
				t.Error(diff)
			}
			tc.find(h)
			h.expect("prod-0", "held")
			h.must(h.Update(h.Context(), h.confirmed("prod-0", is[0].HeldRemoval.Confirmation)))
			h.expect("prod-0", "assigned")
		})
	}
}

// A removal that is held stays so while the stack's next revision waits for the turn of the cluster in a rollout. Its confirmation
// counts meanwhile.
func TestHeldRemovalOutlivesTheBeginOfARollout(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(otherAddon)
	h.expect("prod-0", "held")
	is := h.clusterAddon("prod-0").Spec.Stacks
	h.edit(func(s *addonsv1.AddonStack) {
		s.Spec.Rollout, s.Spec.Addons[0].Values = &addonsv1.Rollout{}, &apiextensionsv1.JSON{Raw: []byte(`{"a": 1}`)}
	})
	next := h.revisionOf("platform-3", 3)
	rollout.Begin(next, rollout.Edited, false)
	h.must(h.Create(h.Context(), next))
	h.isInForce()
	h.expect("prod-0", "held")
	if diff := cmp.Diff(is, h.clusterAddon("prod-0").Spec.Stacks); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	h.must(h.Update(h.Context(), h.confirmed("prod-0", is[0].HeldRemoval.Confirmation)))
	h.expect("prod-0", "assigned")
	if now := h.clusterAddon("prod-0").Spec.Stacks; now[0].Revision != "platform-2" {
		t.Errorf("it is %+v, and has no turn yet", now)
	}
	h.expect("prod-0", "assigned")
}

// confirmed returns a ClusterAddon with a confirmation.
func (h *hub) confirmed(name, confirmation string) *addonsv1.ClusterAddon {
	h.Helper()
	ca := h.clusterAddon(name)
	metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, confirmation)
	return ca
}

// The limit is a share of the clusters that have add-ons of the stack, not of all there are.
func TestLimitIsOfClustersThatHaveTheStack(t *testing.T) {
	h := newHub(t, 30, "")
	for _, name := range h.clusters[2:] {
		change(h, &addonsv1.ClusterAddon{}, name, func(ca *addonsv1.ClusterAddon) { ca.Spec.Stacks, ca.Status.Addons = nil, nil })
	}
	for _, name := range h.clusters {
		relabel(h, name)
	}
	h.expect("prod-0", "held")
}

// A cluster whose status is behind may have the add-ons by now, and counts as one that has them.
func TestClustersThatAreBehindCount(t *testing.T) {
	h := newHub(t, 20, "")
	for _, name := range h.clusters[2:] {
		change(h, &addonsv1.ClusterAddon{}, name, func(ca *addonsv1.ClusterAddon) { ca.Generation, ca.Status.Addons = 2, nil })
	}
	relabel(h, "prod-0")
	relabel(h, "prod-1")
	h.expect("prod-0", "gone")
}

// An add-on that is to be there at other times goes from the clusters now, and the stack has it still. So it is held with its
// whole stack.
func TestAddonThatIsThereAtOtherTimesIsHeld(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Lifecycle = &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}
	})
	h.expect("prod-0", "held")
	if got := stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "platform"); got != "platform-1" {
		t.Errorf("it runs %s", got)
	}
}

// A ClusterAddon that is being deleted isn't written to.
func TestClusterAddonThatIsBeingDeletedStays(t *testing.T) {
	h := newHub(t, 1, "")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Finalizers = []string{"example.com/stay"} })
	h.must(h.Delete(t.Context(), h.clusterAddon("prod-0")))
	relabel(h, "prod-0")
	h.expect("prod-0", "assigned")
}

// withoutClusterAddons is the cache of an instance that doesn't see the ClusterAddons.
type withoutClusterAddons struct{ client.Client }

func (c withoutClusterAddons) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, is := o.(*addonsv1.ClusterAddon); is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "clusteraddons"}, key.Name)
	}
	return c.Client.Get(ctx, key, o, options...)
}

// A ClusterAddon is taken over with its Cluster, and not if it is of another kind of cluster that has the same name.
func TestClusterAddonOfAnotherKindIsNotTakenOver(t *testing.T) {
	for _, ref := range []*addonsv1.ClusterReference{nil, {Kind: addonsv1.KindKubeconfigContext, Name: "prod-0"}} {
		t.Run(fmt.Sprint(ref), func(t *testing.T) {
			h := newHub(t, 1, "")
			change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Spec.ClusterRef = ref })
			change(h, &clusterv1.Cluster{}, "prod-0", func(c *clusterv1.Cluster) { c.Labels[clusterv1.WatchLabel], c.Spec.Paused = "a", ptr.To(true) })
			h.r.Client = withoutClusterAddons{h.Client}
			h.reconcile("prod-0")
			if _, taken := h.clusterAddon("prod-0").Labels[clusterv1.WatchLabel]; taken != (ref == nil) {
				t.Errorf("it was taken over: %t", taken)
			}
		})
	}
}

// The ClusterAddon of a cluster that another instance's source has stays.
func TestClusterAddonOfAnotherSourceStays(t *testing.T) {
	h := newHub(t, 1, "")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Spec.ClusterRef = &addonsv1.ClusterReference{Kind: addonsv1.KindKubeconfigContext, Name: "prod-0"}
	})
	h.must(h.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "prod-0"}}))
	h.reconcile("prod-0")
	h.clusterAddon("prod-0")
}

// A ClusterAddon that is made is told of.
func TestNewClusterAddonIsTold(t *testing.T) {
	h := newHub(t, 1, "")
	h.must(h.Delete(t.Context(), h.clusterAddon("prod-0")))
	recorder := events.NewFakeRecorder(2)
	h.r.Recorder = recorder
	h.expect("prod-0", "assigned")
	h.expect("prod-0", "assigned")
	if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, "ClusterAddonCreated") {
		t.Errorf("%d events more", len(recorder.Events))
	}
}

// A ClusterAddon belongs to its Cluster, and has its watch filter. Once it is so, nothing is written.
func TestClusterAddonFollowsItsCluster(t *testing.T) {
	h := newHub(t, 1, "")
	h.must(h.Delete(t.Context(), h.clusterAddon("prod-0")))
	filter := "a"
	set := func(c *clusterv1.Cluster) {
		if delete(c.Labels, clusterv1.WatchLabel); filter != "" {
			c.Labels[clusterv1.WatchLabel] = filter
		}
	}
	for _, filter = range []string{"a", "b", ""} {
		change(h, &clusterv1.Cluster{}, "prod-0", set)
		h.reconcile("prod-0")
		ca := h.clusterAddon("prod-0")
		if is, has := ca.Labels[clusterv1.WatchLabel]; is != filter || has != (filter != "") {
			t.Errorf("its watch filter is %q, want %q", is, filter)
		}
		if ca.Spec.ClusterName != "prod-0" || len(ca.OwnerReferences) != 1 || ca.OwnerReferences[0].UID != "cluster" {
			t.Errorf("it belongs to %s, %v", ca.Spec.ClusterName, ca.OwnerReferences)
		}
		if h.reconcile("prod-0"); h.clusterAddon("prod-0").ResourceVersion != ca.ResourceVersion {
			t.Error("it is written once more")
		}
	}
}
