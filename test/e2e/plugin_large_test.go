// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

// madeClusterAddon returns the ClusterAddon of a cluster with 30 add-ons, as large as a real one, and its status. Three
// have an add-on that failed.
func madeClusterAddon(tn *tenant, number int) *addonsv1.ClusterAddon {
	ca := tn.clusterAddon(fmt.Sprintf("prod-%04d", number))
	ca.Spec.ClusterName = ca.Name
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-5d60266b86"}}
	ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-5d60266b86", State: addonsv1.StackReady, Since: metav1.Now()}}
	ca.Status.ReadyAddons = "30/30"
	for i := range 30 {
		a := addonsv1.AddonStatus{
			Name: fmt.Sprintf("addon-%02d", i), Namespace: "kube-system", Stack: "platform", Phase: addonsv1.AddonReady, Since: metav1.Now(),
			Version: "1.19.6", Revision: 3, Objects: &addonsv1.ObjectCounts{Total: 20, Ready: 20},
			RecordDigest: "sha256:" + strings.Repeat("b", 64),
			Drift:        &addonsv1.AddonDrift{Repaired: 1, LastTime: metav1.Now(), LastManagers: []string{"kubectl"}, Message: "Deployment kube-system/x: .spec.replicas by kubectl"},
		}
		if number%400 == 17 && i == 7 {
			a.Phase, a.Reason, a.Message = addonsv1.AddonFailed, "HookFailed", "pre-install hook Job kube-system/x: BackoffLimitExceeded"
		}
		ca.Status.Addons = append(ca.Status.Addons, a)
	}
	for _, kind := range []string{addonsv1.ReadyCondition, addonsv1.AddonsReadyCondition, addonsv1.ClusterReachableCondition, addonsv1.ControlPlaneInitializedCondition} {
		conditions.Set(ca, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	return ca
}

// TestLargeFleetSeenWithKubectl prints what it costs to look at 1,000 clusters with 30 add-ons each, and counts requests.
func TestLargeFleetSeenWithKubectl(t *testing.T) {
	long.Test(t)
	tn := newTenant(t)
	const clusters, page = 1000, 100
	var making sync.WaitGroup
	for worker := range 8 {
		making.Go(func() {
			for i := worker; i < clusters; i += 8 {
				ca := madeClusterAddon(tn, i)
				status := ca.Status
				if err := world.hub.Create(t.Context(), ca); err != nil {
					t.Error(err)
					return
				}
				ca.Status = status
				if err := world.hub.Status().Update(t.Context(), ca); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	making.Wait()
	p := tn.newPlugin()
	for _, args := range [][]string{{"status"}, {"why", "prod-0017"}} {
		begin := world.hub.mark(t)
		out, took, peak := p.measured(args...)
		t.Logf("%v: %s, %.0f MiB", args, took.Round(time.Millisecond), peak)
		tn.Expect(out).To(ContainSubstring("prod-0417"), "where else it is so")
		requests := described(begin.requests(t, p.user), func(auditEvent) bool { return true })
		tn.Expect(requests).To(HaveLen(clusters/page+2), "a page after the other, and each other kind once")
	}
}

// measured returns what a command line that evaluates a failure writes, how long it takes, and the most memory it has, in MiB.
func (p *plugin) measured(args ...string) (output string, took time.Duration, peak float64) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.binary, args...)
	out := &bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "KUBECONFIG="+p.kubeconfig), out, out
	start := time.Now()
	must.Succeed(p.t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code says it
		took = time.Since(start)
	}()
	for {
		if is, err := process.Memory(cmd.Process.Pid, process.PeakResident); err == nil {
			peak = max(peak, is)
		}
		select {
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				p.t.Fatalf("%v: exit code %d: %s", args, code, out)
			}
			return out.String(), took, peak
		case <-time.After(5 * time.Millisecond):
		}
	}
}
