// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestStacksOfARepositoryShareLooks has many stacks follow a repository for three intervals: it is looked at once in each.
func TestStacksOfARepositoryShareLooks(t *testing.T) {
	const intervals = 3
	server := gitserver.Start(t, false)
	repository := server.Repository(t, "charts.git")
	repository.Commit(map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n"})
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	sources, err := source.New(source.Options{Opener: renderer, AllowLoopback: true, Clock: clock})
	must.Succeed(t, err)
	r := following.Finder{Bundles: following.Bundles{Sources: sources, Events: report.Events{Recorder: events.NewFakeRecorder(100)}}, Clock: clock}
	stackOf := func(i int) *addonsv1.AddonStack {
		s := &addonsv1.AddonStack{}
		s.Namespace, s.Name, s.UID, s.Generation = "team", fmt.Sprint("stack-", i), types.UID(fmt.Sprint(i)), 1
		s.Spec.Addons = []addonsv1.Addon{{Name: "demo", Chart: addonsv1.ChartSource{Git: &addonsv1.GitSource{URL: repository.URL, Branch: "main", PlainHTTP: ptr.To(true)}}}}
		return s
	}
	// The turns of a repository depend on its address, and so on the server's port: the stacks begin in the middle between two.
	f, err := r.Follow(t.Context(), stackOf(0), &following.Poll{}, "", nil)
	must.Succeed(t, err)
	clock.Step(f.Again + addonsv1.DefaultUpdateInterval/2)
	server.Looks.Store(0)
	polls, due := map[string]*following.Poll{}, map[string]time.Time{}
	for begun := clock.Now(); clock.Since(begun) < intervals*addonsv1.DefaultUpdateInterval; clock.Step(10 * time.Second) {
		for i := range 20 {
			s := stackOf(i)
			if clock.Now().Before(due[s.Name]) {
				continue
			}
			if polls[s.Name] == nil {
				polls[s.Name] = &following.Poll{}
			}
			f, err := r.Follow(t.Context(), s, polls[s.Name], "", nil)
			must.Succeed(t, err)
			due[s.Name] = clock.Now().Add(f.Again)
		}
	}
	must.Equal(t, int32(1+intervals), server.Looks.Load(), "looks, of which the first is at the beginning")
}
