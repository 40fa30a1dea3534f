// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/wait"
)

func connected(ca *addonsv1.ClusterAddon) bool {
	return conditions.IsTrue(ca, addonsv1.ClusterReachableCondition)
}

// ready returns a check whether a cluster has a generation of the stack.
func (f *fleet) ready(generation int32) func(*addonsv1.ClusterAddon) bool {
	return func(ca *addonsv1.ClusterAddon) bool {
		for _, a := range ca.Status.Addons {
			if a.Phase != addonsv1.AddonReady || a.Name == "metrics-server" && a.Revision != generation {
				return false
			}
		}
		return len(ca.Status.Addons) == f.size.Addons && conditions.IsTrue(ca, addonsv1.ReadyCondition)
	}
}

// await returns once all ClusterAddons are as a check wants them. It watches, as to list a large fleet again and again
// would take what is measured.
func (f *fleet) await(state string, check func(*addonsv1.ClusterAddon) bool) {
	f.Helper()
	begin := time.Now()
	addons := f.watchAddons()
	defer func() { addons.Stop() }()
	late := time.NewTimer(f.patience())
	defer late.Stop()
	said := time.Now()
	for are := map[string]bool{}; len(are) < len(f.clusters); {
		select {
		case event := <-addons.ResultChan():
			ca, ok := event.Object.(*addonsv1.ClusterAddon)
			switch {
			case !ok: // as the API server does with one that is slow
				addons.Stop()
				addons = f.watchAddons()
			case check(ca):
				are[ca.Name] = true
			default:
				delete(are, ca.Name)
			}
		case <-late.C:
			f.Fatalf("%d of %d clusters are %s", len(are), len(f.clusters), state)
		}
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			f.Logf("%s: %d of %d clusters are %s", time.Since(begin).Round(time.Second), len(are), len(f.clusters), state)
		}
	}
}

// watchAddons begins with all ClusterAddons as they are.
func (f *fleet) watchAddons() watch.Interface {
	w, err := f.hub.Watch(f.Context(), &addonsv1.ClusterAddonList{}, client.InNamespace(namespace))
	NewWithT(f.TB).Expect(err).NotTo(HaveOccurred())
	return w
}

// settle returns how long it took until nothing was asked any more. It waits a while longer.
func (f *fleet) settle() time.Duration {
	f.Helper()
	const calm = 20
	marks := make([]audit.Mark, 0, len(f.servers))
	for _, s := range f.servers {
		marks = append(marks, s.Audit.Mark(f.TB))
	}
	same, begin, last := 0, time.Now(), time.Now()
	wait.Until(f.TB, f.patience(), "nothing happens any more", func() error {
		n := 0
		for i := range marks {
			// Before it is read: what comes in between is counted twice, rather than never.
			next := f.servers[i].Audit.Mark(f.TB)
			n += len(marks[i].Requests(f.TB, notProbe))
			marks[i] = next
		}
		if same++; n > 0 {
			same, last = 0, time.Now()
		}
		if same < calm {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	return last.Sub(begin)
}

// notProbe reports whether a request is Chandler's, and none by which it sees whether the server is there.
func notProbe(e *audit.Event) bool {
	return audit.By(user)(e) && !audit.Probe(e)
}
