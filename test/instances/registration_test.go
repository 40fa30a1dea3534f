// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// heartbeat makes an instance say that it is alive every so many seconds. It counts as
// gone after four of them.
func heartbeat(seconds int) []string {
	return []string{fmt.Sprintf("--instance-heartbeat=%ds", seconds)}
}

func expiryOf(seconds int) time.Duration { return 4 * time.Duration(seconds) * time.Second }

// registered returns the instance's ProviderInstance.
func (i *instance) registered() (*addonsv1.ProviderInstance, error) {
	all := &addonsv1.ProviderInstanceList{}
	if err := i.w.List(i.w.t.Context(), all, client.InNamespace(i.namespace)); err != nil {
		return nil, err
	}
	if len(all.Items) != 1 {
		return nil, fmt.Errorf("%d ProviderInstances in namespace %s", len(all.Items), i.namespace)
	}
	return &all.Items[0], nil
}

// awaitRegistered waits until the ProviderInstance passes the check.
func (i *instance) awaitRegistered(reason string, check func(*addonsv1.ProviderInstance) error) *addonsv1.ProviderInstance {
	i.w.t.Helper()
	var found *addonsv1.ProviderInstance
	wait.Until(i.w.t, patience, reason, func() error {
		var err error
		if found, err = i.registered(); err != nil {
			return err
		}
		return check(found)
	})
	return found
}

// awaitActive waits until the instance holds its scope, and is ready.
func (i *instance) awaitActive(reason string) *addonsv1.ProviderInstance {
	i.w.t.Helper()
	found := i.awaitRegistered(reason, active)
	i.awaitReady()
	return found
}

func active(pi *addonsv1.ProviderInstance) error {
	if !pi.HoldsScope() {
		return fmt.Errorf("its scope isn't granted: %s", said(pi))
	}
	return hasCondition(pi, addonsv1.ReadyCondition, metav1.ConditionTrue, "")
}

// waiting expects the instance to say why it waits, with all of the texts.
func waiting(kind, reason string, texts ...string) func(*addonsv1.ProviderInstance) error {
	return func(pi *addonsv1.ProviderInstance) error {
		if pi.HoldsScope() {
			return fmt.Errorf("its scope is granted: %s", said(pi))
		}
		if err := hasCondition(pi, kind, metav1.ConditionFalse, reason, texts...); err != nil {
			return err
		}
		return hasCondition(pi, addonsv1.ReadyCondition, metav1.ConditionFalse, "", texts...)
	}
}

func hasCondition(pi *addonsv1.ProviderInstance, kind string, status metav1.ConditionStatus, reason string, texts ...string) error {
	c := conditions.Get(pi, kind)
	if c == nil || c.Status != status || reason != "" && c.Reason != reason {
		return fmt.Errorf("condition %s isn't %s %s: %s", kind, status, reason, said(pi))
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition %s doesn't say %q: %s", kind, text, said(pi))
		}
	}
	return nil
}

// said are the conditions in words.
func said(pi *addonsv1.ProviderInstance) string {
	var texts []string
	for _, c := range pi.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(texts, "; ")
}

// counted expects the instance to have so many Clusters in its care, all ready.
func counted(pi *addonsv1.ProviderInstance, clusters int32) error {
	if c := pi.Status.Clusters; c == nil || c.Total != clusters || c.Ready != clusters {
		return fmt.Errorf("it counts %+v", c)
	}
	return nil
}

// unmoved expects that nothing of the object changes but its heartbeat.
func unmoved(before, now *addonsv1.ProviderInstance) error {
	if before.UID != now.UID || before.Generation != now.Generation {
		return fmt.Errorf("it was written: generation %d of %s became %d of %s", before.Generation, before.UID, now.Generation, now.UID)
	}
	if was, is := said(before), said(now); was != is {
		return fmt.Errorf("its conditions changed from %s to %s", was, is)
	}
	for _, c := range before.Status.Conditions {
		if !conditions.Get(now, c.Type).LastTransitionTime.Equal(&c.LastTransitionTime) {
			return fmt.Errorf("condition %s went back and forth", c.Type)
		}
	}
	return nil
}

// gone expects that the instance has no ProviderInstance any more.
func (i *instance) gone() error {
	if _, err := i.registered(); err == nil {
		return errors.New("there is still a ProviderInstance")
	}
	return nil
}

// kubectlGet returns the words of each line.
func (w *world) kubectlGet(t *testing.T, args ...string) [][]string {
	t.Helper()
	dir, err := controlplane.BinDir(context.WithoutCancel(t.Context()), os.Stderr, "kubectl")
	must.Succeed(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, w.Kubeconfig(), 0o600))
	args = append([]string{"--kubeconfig=" + kubeconfig, "get"}, args...)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args[1:], " "), err, out)
	}
	t.Logf("kubectl %s\n%s", strings.Join(args[1:], " "), out)
	var table [][]string
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 0 {
			table = append(table, words)
		}
	}
	return table
}
