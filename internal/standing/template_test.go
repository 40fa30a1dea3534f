// SPDX-License-Identifier: Apache-2.0

package standing_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Two clusters, a and b, have one cause if their messages differ only by names that each one alone has.
func TestOneCauseOrTwo(t *testing.T) {
	addon := func(phase addonsv1.AddonPhase, reason string) func(string, string) standing.Cause {
		return func(cluster, message string) standing.Cause {
			return standing.OfAddon(cluster, &addonsv1.AddonStatus{Name: "web", Phase: phase, Reason: reason, Message: message})
		}
	}
	condition := func(kind, reason string) func(string, string) standing.Cause {
		return func(cluster, message string) standing.Cause {
			return standing.OfCondition(cluster, &metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
		}
	}
	reachable := addonsv1.ClusterReachableCondition
	image := func(pod, image, words string) string {
		return "Deployment default/web: 0 of 1 replicas are available. Container web of pod " + pod + ": ImagePullBackOff, image " + image + words
	}
	for name, tc := range map[string]struct {
		of   func(cluster, message string) standing.Cause
		a, b string
		same bool
	}{
		"the Cluster": {condition(addonsv1.ControlPlaneInitializedCondition, "ControlPlaneNotInitialized"),
			"Waiting for status.initialization.controlPlaneInitialized of Cluster prod-a", "Waiting for status.initialization.controlPlaneInitialized of Cluster prod-b", true},
		"server and Secret": {condition(reachable, "ConnectionRefused"),
			"10.3.0.1:6443 refuses connections; check the address in Secret t/prod-a-kubeconfig is right", "prod-b.example.org:443 refuses connections; check the address in Secret t/prod-b-kubeconfig is right", true},
		"another fault": {condition(reachable, "TLSFailed"),
			"10.3.0.1:6443 fails the TLS handshake: its certificate is for other names", "10.3.0.2:6443 fails the TLS handshake: its certificate has expired", false},
		"another status": {condition(reachable, "ProbeFailed"), "10.3.0.1:6443 answers with HTTP status 500", "10.3.0.2:6443 answers with HTTP status 404", false},
		"a Secret that isn't named by the cluster": {addon(addonsv1.AddonPending, "ValuesNotFound"), "Secret t/one doesn't exist", "Secret t/other doesn't exist", false},
		"a Secret of each":                         {addon(addonsv1.AddonPending, "ValuesNotFound"), "Secret t/values-prod-a doesn't exist", "Secret t/values-prod-b doesn't exist", true},
		"a name that begins as the cluster's":      {addon(addonsv1.AddonPending, "ValuesNotFound"), "Secret t/prod-abc doesn't exist", "Secret t/prod-bcd doesn't exist", false},
		"hosts of charts":                          {addon(addonsv1.AddonPending, "SourceUnauthorized"), "one.example.org:443 answers 401", "other.example.org:443 answers 401", false},
		"pods":                                     {addon(addonsv1.AddonFailed, "HookFailed"), `Job x: pods "web-7cc4474c69-7sxb5" is forbidden`, `Job x: pods "web-6bd9b5c7f-hjdtf" is forbidden`, true},
		"pods of other workloads":                  {addon(addonsv1.AddonFailed, "HookFailed"), `Job x: pods "web-7cc4474c69-7sxb5" is forbidden`, `Job x: pods "api-6bd9b5c7f-hjdtf" is forbidden`, false},
		"a service's address":                      {addon(addonsv1.AddonFailed, "ApplyFailed"), "Post: dial tcp 10.96.4.1:443: connect: connection refused", "Post: dial tcp 10.96.7.9:443: connect: connection refused", true},
		"an image":                                 {addon(addonsv1.AddonInstalling, "ImagePullBackOff"), image("web-7cc4474c69-7sxb5", "r.example.org/web:bad", ": Back-off pulling image"), image("web-6bd9b5c7f-hjdtf", "r.example.org/web:bad", ": not found"), true},
		"two images":                               {addon(addonsv1.AddonDegraded, "ImagePullBackOff"), image("web-7cc4474c69-7sxb5", "r.example.org/web:bad", ""), image("web-6bd9b5c7f-hjdtf", "r.example.org/web:worse", ""), false},
		"workloads":                                {addon(addonsv1.AddonDegraded, "CrashLoopBackOff"), "Deployment default/web: 0 of 1 replicas", "Deployment default/api: 0 of 1 replicas", false},
		"how far it is":                            {addon(addonsv1.AddonInstalling, "WaitingForObjects"), "Deployment web: 0/2", "Deployment web: 1/2", true},
	} {
		told := standing.Causes{}
		told.Add("prod-a", tc.of("prod-a", tc.a))
		told.Add("prod-b", tc.of("prod-b", tc.b))
		texts := told.Describe()
		if len(texts) != 1 && tc.same || len(texts) != 2 && !tc.same {
			t.Errorf("%s: %q", name, texts)
		}
		if tc.same && !strings.Contains(texts[0], ": on prod-a, "+tc.a) {
			t.Errorf("%s: the message isn't told as an example: %s", name, texts[0])
		}
	}
}

// BenchmarkTemplates has the causes of 5,000 clusters that don't answer.
func BenchmarkTemplates(b *testing.B) {
	for b.Loop() {
		told := standing.Causes{}
		for i := range 5000 {
			name := fmt.Sprintf("prod-%04d", i)
			told.Add(name, standing.OfCondition(name, &metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: "ConnectionRefused",
				Message: "10.3.0.1:6443 refuses connections; check that the control plane runs and that the address in Secret default/" + name + "-kubeconfig is right"}))
		}
		if len(told.Describe()) != 1 {
			b.Fatal("several causes")
		}
	}
}
