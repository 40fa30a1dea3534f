// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
)

// await waits until the ClusterAddon on a management cluster is as wanted.
func (tm *team) await(hub *server, reason string, check func(*addonsv1.ClusterAddon) error) {
	tm.t.Helper()
	NewWithT(tm.t).Eventually(func() error {
		ca := &addonsv1.ClusterAddon{}
		if err := hub.Get(tm.t.Context(), tm.key(clusterName), ca); err != nil {
			return err
		}
		return check(ca)
	}).WithTimeout(patience).Should(Succeed(), reason)
}

// ready expects all add-ons to be ready, and no other.
func ready(addons ...string) func(*addonsv1.ClusterAddon) error {
	return func(ca *addonsv1.ClusterAddon) error {
		phases := map[string]addonsv1.AddonPhase{}
		for _, a := range ca.Status.Addons {
			phases[a.Name] = a.Phase
		}
		for _, name := range addons {
			if phases[name] != addonsv1.AddonReady {
				return fmt.Errorf("add-ons are %v: %v", phases, ca.Status.Conditions)
			}
		}
		if len(phases) != len(addons) || !conditions.IsTrue(ca, addonsv1.ReadyCondition) || ca.Status.ObservedGeneration != ca.Generation {
			return fmt.Errorf("add-ons are %v, of generation %d of %d: %v", phases, ca.Status.ObservedGeneration, ca.Generation, ca.Status.Conditions)
		}
		return nil
	}
}

// phase expects an add-on to be in it, with a message that says something.
func phase(addon string, wanted addonsv1.AddonPhase, message string) func(*addonsv1.ClusterAddon) error {
	return func(ca *addonsv1.ClusterAddon) error {
		for _, a := range ca.Status.Addons {
			if a.Name == addon {
				if ok, err := ContainSubstring(message).Match(a.Message); a.Phase != wanted || !ok || err != nil {
					return fmt.Errorf("add-on %s is %s: %q", addon, a.Phase, a.Message)
				}
				return nil
			}
		}
		return fmt.Errorf("no add-on %s", addon)
	}
}

// requests are those that a user made since a moment, up to now.
func (s *server) requests(t *testing.T, user string, since time.Time) []audit.Event {
	t.Helper()
	return s.Audit.Beginning().Requests(t, func(e *audit.Event) bool {
		return e.User.Username == user && !e.RequestReceivedTimestamp.Time.Before(since)
	})
}

// by are the requests of a version of Chandler.
func by(version string, events []audit.Event) []audit.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e audit.Event) bool { return e.UserAgent != "chandler/"+version })
}

// noted is the record that notes which ConfigMap its chart is in. The object has another UID after a move.
const noted = "/secrets/sh.helm.release.v1.settings.v"

// writesButNotes describes the requests that change something, but for those that write the note.
func writesButNotes(events []audit.Event) []string {
	return slices.DeleteFunc(writes(events), func(request string) bool {
		return strings.Contains(request, ": patch ") && strings.Contains(request, noted)
	})
}

// writes describes the requests that change something.
func writes(events []audit.Event) []string {
	var all []string
	for _, e := range events {
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !strings.HasPrefix(e.RequestURI, "/apis/authorization.k8s.io/") && !strings.Contains(e.RequestURI, "dryRun=All") {
			all = append(all, e.UserAgent+": "+e.Verb+" "+e.RequestURI)
		}
	}
	return all
}
