// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// TestGitOfAFleet has CHANDLER_E2E_GIT_CLUSTERS clusters with a hundred add-ons each, all of one repository, in two stacks. A commit is
// fetched once, a push reaches all clusters with one fetch, and in each interval the repository is looked at once.
func TestGitOfAFleet(t *testing.T) {
	const addons, stacks, interval = 100, 2, time.Minute
	clusters := environmentNumber(t, "CHANDLER_E2E_GIT_CLUSTERS", 0)
	if clusters == 0 {
		t.Skip("CHANDLER_E2E_GIT_CLUSTERS says how many")
	}
	tn := newTenant(t)
	server := gitserver.Start(t, true)
	repository := server.Repository(t, "charts.git")
	files := map[string]string{}
	put := func(i int, version string) {
		for name, data := range configMapChart.complete(fmt.Sprint("addon-", i), version) {
			files[fmt.Sprintf("charts/%d/%s", i, name)] = data
		}
	}
	for i := range addons {
		put(i, "1.0.0")
	}
	repository.Commit(files)
	access := t.TempDir()
	write(t, access, credentials.KeyOf(server.Listener.Addr().String())+".ca.crt", server.CA())
	m := tn.startManager("--credentials-dir=" + access)
	authority := virtualcluster.NewAuthority(t)
	for i := range clusters {
		name := fmt.Sprint("cluster-", i)
		tn.writeKubeconfig(name, authority.New(t, tn.userOn(workloadServer(t, 1), name), name).Kubeconfig)
		tn.makeClusterObject(name, labels("env=prod"))
	}
	begun := time.Now()
	for i := range stacks {
		s := tn.newStack(fmt.Sprint("stack-", i), labels("env=prod"))
		s.Spec.Updates = &addonsv1.Updates{Interval: &metav1.Duration{Duration: interval}}
		for addon := i; addon < addons; addon += stacks {
			s.Spec.Addons = append(s.Spec.Addons, tn.addon(fmt.Sprint("addon-", addon), "", func(a *addonsv1.Addon) {
				a.Chart = addonsv1.ChartSource{Git: &addonsv1.GitSource{URL: repository.URL, Branch: "main", Path: fmt.Sprint("charts/", addon)}}
			}))
		}
		tn.create(s)
	}
	allReady := func(revision int32, version string) {
		t.Helper()
		for i := range stacks {
			await(t, world.hub, tn.newStack(fmt.Sprint("stack-", i), nil), 20*patience, "all add-ons are ready", counts(int32(clusters), int32(clusters)))
		}
		for i := range clusters {
			tn.awaitCluster(fmt.Sprint("cluster-", i), "it has the commit", installedAs("addon-0", revision, version))
		}
	}
	allReady(1, "1.0.0")
	t.Logf("%d clusters with %d add-ons each, in %d stacks: installed after %s, with %d MiB", clusters, addons, stacks, time.Since(begun).Round(time.Second), memoryOf(t, m))
	must.Equal(t, int32(1), server.Fetches.Load(), "fetches of the first commit")

	put(0, "1.1.0")
	repository.Commit(files)
	begun = time.Now()
	poll(t, 2*interval, "the commit is fetched", func() error {
		if server.Fetches.Load() < 2 {
			return fmt.Errorf("%d fetches", server.Fetches.Load())
		}
		return nil
	})
	seen := time.Since(begun)
	allReady(2, "1.1.0")
	t.Logf("a push was seen after %s, and everywhere after %s, with %d MiB", seen.Round(time.Second), time.Since(begun).Round(time.Second), memoryOf(t, m))
	must.Equal(t, int32(2), server.Fetches.Load(), "fetches of both commits")
	if seen > interval+interval/4 {
		t.Errorf("the push was seen after %s", seen)
	}

	awaitLooks := func(looks int32) time.Time {
		t.Helper()
		poll(t, 4*interval, "it is looked at again", func() error {
			if is := server.Looks.Load(); is < looks {
				return fmt.Errorf("%d looks", is)
			}
			return nil
		})
		return time.Now()
	}
	next := server.Looks.Load() + 1
	from := awaitLooks(next)
	if rest := awaitLooks(next + 2).Sub(from); rest < 2*interval-interval/4 {
		t.Errorf("at rest, it was looked at twice in %s", rest)
	}
	must.Equal(t, int32(2), server.Fetches.Load(), "fetches at rest")
}
