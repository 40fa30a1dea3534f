// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// rotatedObjects is how many objects the add-on has that is applied meanwhile.
const rotatedObjects = 30

// mostRotation is how long an error may be shown because credentials change.
const mostRotation = 5 * time.Second

// TestRotationWhileApplying replaces all that a kubeconfig holds, one after the other, each in the
// middle of an upgrade.
func TestRotationWhileApplying(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	path := tn.writeChart("many", "1.0.0", chart{"values.yaml": "text: none\n", "templates/all.yaml": fmt.Sprintf("{{ range $i := until %d }}\n---\n%s{{ end }}\n",
		rotatedObjects, configMap("many-{{ $i }}", "{{ $.Values.text | quote }}"))})
	tn.makeCluster("c", s, labels("env=prod"))
	tn.startManager()
	tn.install(tn.addon("many", path))

	seen := make(chan string, 1000) // the text of each write
	stopWrites := tn.watchAll(s, &corev1.ConfigMapList{}, func(event watch.Event) {
		if c, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Modified {
			seen <- c.Data["text"]
		}
	})
	writes := map[string]int{} // of each text
	awaitWrites := func(text string, n int) {
		t.Helper()
		for tooLate := time.After(patience); writes[text] < n; {
			select {
			case written := <-seen:
				writes[written]++
			case <-tooLate:
				t.Fatalf("%s is written %d times", text, writes[text])
			}
		}
	}
	errorsShown := tn.watchErrors("c")
	front := tn.proxyAs(tn.userOn(s, "c"))
	next, err := newCertificate()
	tn.Expect(err).NotTo(HaveOccurred())
	both := append(append([]byte{}, mustCertificate(t).chain...), next.chain...)
	token := tn.tokensOn(s)

	steps := []struct {
		name string
		do   func()
	}{
		{"from a certificate to a token", func() { tn.writeKubeconfig("c", token()) }},
		{"the token", func() { tn.writeKubeconfig("c", token()) }},
		{"from a token to a certificate", func() { tn.writeKubeconfig("c", tn.userOn(s, "c").Kubeconfig) }},
		{"the certificate", func() { tn.writeKubeconfig("c", tn.userOn(s, "c").Kubeconfig) }},
		{"the address and its CA", func() { tn.writeKubeconfig("c", front.kubeconfig(t)) }},
		{"the CA, to both", func() { tn.writeKubeconfig("c", front.kubeconfigWith(t, both)) }},
		{"what the server shows", func() { front.show(t, next) }},
		{"the CA, to the new one", func() { tn.writeKubeconfig("c", front.kubeconfigWith(t, next.chain)) }},
		{"the address back", func() { tn.writeKubeconfig("c", token()) }},
	}
	for i, step := range steps {
		text := fmt.Sprint("text-", i)
		tn.changeAddon("platform", "many", withValues(map[string]any{"text": text}))
		awaitWrites(text, 1)
		step.do()
		tn.awaitCluster("c", step.name, ready("many"), installedAs("many", int32(i+2), ""))
		awaitWrites(text, rotatedObjects)
		longest, shown := errorsShown()
		t.Logf("%s: %d writes, an error for %s: %v", step.name, writes[text], longest.Round(time.Millisecond), shown)
		if longest > mostRotation {
			t.Errorf("%s: an error is shown for %s", step.name, longest)
		}
	}
	stopWrites()
	close(seen)
	for text := range seen {
		writes[text]++
	}
	for text, n := range writes {
		tn.Expect(n).To(Equal(rotatedObjects), "writes of "+text)
	}
	tn.Expect(writes).To(HaveLen(len(steps)))
}

// watchErrors returns what tells how long a Cluster's add-ons showed an error at most, and which,
// since it was last called.
func (tn *tenant) watchErrors(cluster string) func() (time.Duration, []string) {
	tn.t.Helper()
	type sight struct {
		at  time.Time
		err error
	}
	sights := make(chan sight, 1000)
	tn.t.Cleanup(tn.watchAll(world.hub, &addonsv1.ClusterAddonList{}, func(event watch.Event) {
		if ca, ok := event.Object.(*addonsv1.ClusterAddon); ok && ca.Name == cluster {
			sights <- sight{time.Now(), errorOf(ca)}
		}
	}))
	return func() (longest time.Duration, shown []string) {
		var since time.Time // of the error that is shown; zero if there is none
		for {
			select {
			case s := <-sights:
				if !since.IsZero() {
					longest = max(longest, s.at.Sub(since))
				}
				switch {
				case s.err == nil:
					since = time.Time{}
					continue
				case since.IsZero():
					since = s.at
				}
				shown = append(shown, s.err.Error())
			default:
				return longest, shown
			}
		}
	}
}

// errorOf is what a ClusterAddon says is wrong.
func errorOf(ca *addonsv1.ClusterAddon) error {
	if c := conditions.Get(ca, addonsv1.ClusterReachableCondition); c != nil && c.Status != metav1.ConditionTrue {
		return errors.New(c.Reason + ": " + c.Message)
	}
	for _, a := range ca.Status.Addons {
		if a.Phase == addonsv1.AddonFailed || a.Phase == addonsv1.AddonPending || a.Reason != "" {
			return fmt.Errorf("%s %s: %s", a.Phase, a.Reason, a.Message)
		}
	}
	return nil
}

// tokensOn returns what makes kubeconfigs for a server, each with another token of one account.
func (tn *tenant) tokensOn(s *server) func() []byte {
	tn.t.Helper()
	s.createNamespace(tn.t, tn.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: tn.named("chandler")}
	must.Succeed(tn.t, s.Create(tn.t.Context(), account))
	s.bind(tn.t, "", tn.namespace, serviceAccount(account.Namespace, account.Name), "ClusterRole", "cluster-admin")
	return func() []byte {
		tn.t.Helper()
		kubeconfig, err := chandler.ServiceAccountKubeconfig(tn.t.Context(), s.ControlPlane, account.Namespace, account.Name)
		must.Succeed(tn.t, err)
		return kubeconfig
	}
}
