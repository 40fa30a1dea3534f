// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// requests are those that a user made since a moment, up to now.
func (s *server) requests(t *testing.T, user string, since time.Time) []auditv1.Event {
	t.Helper()
	g := NewWithT(t)
	fence := "fence-" + string(uuid.NewUUID())
	_, _ = s.clientset.CoreV1().ConfigMaps("default").Get(t.Context(), fence, metav1.GetOptions{}) // there is none
	var events []auditv1.Event
	g.Eventually(func() bool {
		var err error
		events, err = controlplane.ReadAuditLog(s.auditLog)
		g.Expect(err).NotTo(HaveOccurred())
		return slices.ContainsFunc(events, func(e auditv1.Event) bool { return e.ObjectRef != nil && e.ObjectRef.Name == fence })
	}).WithTimeout(patience).Should(BeTrue(), "the audit log shows what was answered")
	return slices.DeleteFunc(events, func(e auditv1.Event) bool {
		return e.User.Username != user || e.RequestReceivedTimestamp.Time.Before(since)
	})
}

// by are the requests of a version of Chandler.
func by(version string, events []auditv1.Event) []auditv1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e auditv1.Event) bool { return e.UserAgent != "chandler/"+version })
}

// writes describes the requests that change something.
func writes(events []auditv1.Event) []string {
	var all []string
	for _, e := range events {
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !strings.HasPrefix(e.RequestURI, "/apis/authorization.k8s.io/") {
			all = append(all, e.UserAgent+": "+e.Verb+" "+e.RequestURI)
		}
	}
	return all
}
