// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"testing"
	"time"
)

// TestInstalledAgainAndAgain installs and removes a chart whose hooks are Jobs that Kubernetes
// may collect as soon as they are done, while other processes keep all cores busy. It is
// for long runs: once is what TestRealCharts does.
func TestInstalledAgainAndAgain(t *testing.T) {
	times := environmentNumber(t, "CHANDLER_E2E_INSTALLS", 0)
	if times == 0 {
		t.Skip("CHANDLER_E2E_INSTALLS isn't set")
	}
	for range 2 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		must(t, busy.Start())
		defer func() {
			_ = busy.Process.Kill()
			_ = busy.Wait() // killed
		}()
	}
	tn, s := newProd(t, 0)
	path := tn.realChart("ingress-nginx-4.15.1.tgz")
	for i := range times {
		begin := time.Now()
		tn.install(tn.addon("ingress-nginx", path))
		t.Logf("%d: ready after %s", i+1, time.Since(begin).Round(time.Millisecond))
		tn.remove(tn.newStack("platform", nil))
		tn.expectRemoved(t, s, "ingress-nginx")
	}
	for _, note := range tn.warnings() {
		t.Errorf("a Warning: %s", note)
	}
}
