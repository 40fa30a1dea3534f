// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

// TestMemoryOfManyEdits has a stack name another repository, and another ConfigMap with values of 64 KiB, with each edit. The manager's memory at
// rest doesn't grow, and in the end nothing is claimed. CHANDLER_E2E_EDITS has more of them: of 10,000, each hundredth is waited for.
func TestMemoryOfManyEdits(t *testing.T) {
	long.Test(t)
	edits, waited := 40, 1
	if many := os.Getenv("CHANDLER_E2E_EDITS"); many != "" {
		var err error
		edits, err = strconv.Atoi(many)
		must.Succeed(t, err)
		waited = max(1, edits/100)
	}
	archive := configMapChart.archive("settings", "1.0.0")
	index := "apiVersion: v1\nentries:\n  settings:\n  - {apiVersion: v2, name: settings, version: 1.0.0, urls: [settings.tgz], digest: '" +
		strings.TrimPrefix(digestOf(archive), "sha256:") + "'}\n"
	var asked atomic.Int32 // repositories
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/index.yaml"):
			asked.Add(1)
			_, _ = w.Write([]byte(index))
		case strings.HasSuffix(r.URL.Path, "/settings.tgz"):
			_, _ = w.Write(archive)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(host.Close)
	tn := newTenant(t)
	address, err := process.FreeAddress()
	must.Succeed(t, err)
	m := tn.startManager("--profiler-address=" + address)
	values := func(i int) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: tn.named(fmt.Sprint("values-", i))}
		cm.Data = map[string]string{"values.yaml": fmt.Sprintf("text: edit-%d\nunused: %s\n", i, strings.Repeat("x", 64<<10))}
		return cm
	}
	edited := func(i int) func(*addonsv1.Addon) {
		return func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{Version: "1.0.0", Helm: &addonsv1.HelmSource{
				URL: fmt.Sprintf("%s/r%d", host.URL, i), Chart: "settings", PlainHTTP: ptr.To(true),
			}}
			a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: values(i).Name}}
		}
	}
	s := workloadServer(t, 0)
	tn.create(values(0))
	tn.makeStack("edited", nil, tn.addon("edited", "", edited(0)))
	cluster := tn.makeCluster("one", s, nil)
	tn.awaitText(s, "edited", "edit-0")
	edit := func(i int) {
		tn.create(values(i))
		tn.changeAddon("edited", "edited", edited(i))
		if i%waited == 0 {
			tn.awaitText(s, "edited", fmt.Sprint("edit-", i))
			for before := i - waited; before < i; before++ {
				tn.remove(values(before))
			}
		}
	}
	warm := 5 * waited
	for i := range warm {
		edit(i + 1)
	}
	before := liveHeap(t, m, address)
	for i := range edits {
		edit(warm + i + 1)
	}
	after := settledHeap(t, m, address, before)
	t.Logf("%d MiB on the heap before %d edits, %d after; %d repositories were asked", before, edits, after, asked.Load())
	tn.remove(&addonsv1.AddonStack{ObjectMeta: tn.named("edited")})
	tn.awaitCluster("one", "it has no add-on any more", ready())
	tn.remove(cluster)
	poll(t, patience, "nothing is claimed", func() error {
		claimed, err := m.Sum("chandler_memory_claimed_bytes")
		if err == nil && claimed > 0 {
			err = fmt.Errorf("%.0f bytes are claimed", claimed)
		}
		return err
	})
}
