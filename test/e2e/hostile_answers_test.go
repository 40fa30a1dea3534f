// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestAnswerWithoutUID has a cluster that answers writes of records without metadata.uid.
// It says what is wrong, and other clusters are served, before and after.
func TestAnswerWithoutUID(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t)
	fake := startFake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case empty(w, r):
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets"):
			w.WriteHeader(http.StatusCreated)
			answer(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"r","namespace":"n"}}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			answer(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"1","resourceVersion":"1"}}`)
		case r.Method == http.MethodPatch:
			_, _ = io.Copy(w, r.Body)
		default:
			refuse(w, http.StatusNotFound, "NotFound")
		}
	})
	m := tn.startManager()
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.makeCluster("good", workloadServer(t, 0), nil)
	tn.awaitCluster("good", "a good cluster is served", ready("settings"))

	tn.writeKubeconfig("bad", fake)
	tn.makeClusterObject("bad", nil)
	tn.awaitCluster("bad", "the bad one's answer is told", phase("settings", addonsv1.AddonFailed, deliver.ReasonAnswerInvalid, ""))
	tn.makeCluster("another", workloadServer(t, 1), nil)
	tn.awaitCluster("another", "another good cluster is served beside it", ready("settings"))
	g.Expect(m.Done()).NotTo(BeClosed(), "the manager lives")
}
