// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

func job(version int, condition string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
	u.SetNamespace("ns")
	u.SetName("job")
	u.SetUID("1")
	u.SetResourceVersion(strconv.Itoa(version))
	if condition != "" {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": condition, "status": "True"}}, "status", "conditions")
	}
	return u
}

// TestEndOfAJobOutlivesIt deletes a Job after, and together with, the last that is heard of
// it. What it came to counts, and that it is gone only if it came to nothing.
func TestEndOfAJobOutlivesIt(t *testing.T) {
	for name, c := range map[string]struct {
		events []watch.Event
		phase  observe.Phase
	}{
		"complete, then deleted":                  {[]watch.Event{{Type: watch.Modified, Object: job(11, "Complete")}, {Type: watch.Deleted, Object: job(12, "Complete")}}, observe.Current},
		"complete, as the deletion tells":         {[]watch.Event{{Type: watch.Deleted, Object: job(12, "Complete")}}, observe.Current},
		"failed, as the deletion tells":           {[]watch.Event{{Type: watch.Deleted, Object: job(12, "Failed")}}, observe.Failed},
		"deleted while it ran":                    {[]watch.Event{{Type: watch.Deleted, Object: job(12, "")}}, observe.Gone},
		"complete, deleted, and somebody's again": {[]watch.Event{{Type: watch.Deleted, Object: job(12, "Complete")}, {Type: watch.Added, Object: job(13, "")}}, observe.InProgress},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			events := watch.NewFakeWithChanSize(len(c.events), false)
			cluster := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{jobs: "JobList"})
			versions := make(chan string, 1)
			cluster.PrependWatchReactor("jobs", func(action k8stesting.Action) (bool, watch.Interface, error) {
				versions <- action.(k8stesting.WatchAction).GetWatchRestrictions().ResourceVersion
				return true, events, nil
			})
			tracker := observe.New("", func() {}, clock.RealClock{})
			defer tracker.Stop()
			tracker.Track(t.Context(), cluster, observe.Object{
				Resource: jobs, Key: observe.Key{Namespace: "ns", Name: "job"}, Evaluator: readiness.HookDone, Status: observe.Status{Version: "10"},
			})
			g.Eventually(versions).WithTimeout(20*time.Second).Should(Receive(Equal("10")), "nothing that came after the object was applied may be missed")
			for _, event := range c.events {
				events.Action(event.Type, event.Object)
			}
			phase := func() observe.Phase {
				status, known := tracker.Status(jobs, observe.Key{Namespace: "ns", Name: "job"})
				g.Expect(known).To(BeTrue())
				return status.Phase
			}
			events.Stop() // so that all of them are handled once the next watch begins
			g.Eventually(versions).WithTimeout(20 * time.Second).Should(Receive())
			g.Expect(phase()).To(Equal(c.phase))
		})
	}
}
