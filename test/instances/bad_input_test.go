// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestMalformedScope starts the program with a scope that is none. TestParse of internal/manager has more of them.
func TestMalformedScope(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary(defaultVersion), "--run=controllers", "--namespace=team-a,team b")
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/nowhere"}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	g.Expect(ok).To(BeTrue(), "it is to end: %v", err)
	g.Expect(exit.ExitCode()).To(Equal(2), "as wrong usage: %s", &stderr)
	g.Expect(stderr.String()).To(ContainSubstring("--namespace"), "and name the flag")
	g.Expect(strings.Count(strings.TrimSpace(stderr.String()), "\n")).To(BeZero(), "in one line: %s", &stderr)
	g.Expect(stdout.String()).To(BeEmpty())
}

// TestMissing starts an instance where something isn't there yet.
func TestMissing(t *testing.T) {
	long.Test(t)
	t.Parallel()
	w := newWorld(t, usual)
	s := workload(t, 1)
	o := overlay{name: "early", namespaces: []string{"team-a", "team-late"}}
	w.createNamespace("team-a")
	var late []*unstructured.Unstructured
	i := w.prepareInstall(o, func(object *unstructured.Unstructured) bool {
		if object.GetNamespace() == "team-late" {
			late = append(late, object)
		}
		return object.GetNamespace() != "team-late"
	})
	process := i.start(heartbeat(1)...)

	t.Run("a namespace that doesn't exist yet", func(t *testing.T) {
		w, i := w.in(t), i.in(t)
		g := NewWithT(t)
		said := i.awaitRegistered("the instance is to say what it waits for",
			waiting(addonsv1.NamespacesAccessibleCondition, addonsv1.NamespaceNotAccessibleReason, "team-late"))
		wait.Throughout(t, 3*time.Second, "it waits quietly", func() error {
			if process.ready() == nil {
				return errors.New("/readyz says it is ready")
			}
			now, err := i.registered()
			if err != nil {
				return err
			}
			return errors.Join(process.Running(), unmoved(said, now))
		})
		expectNone(t, w.Audit.Beginning().Requests(t, both(audit.By(i.user()), audit.Forbidden)), "it doesn't try what it may not do")
		expectNone(t, w.Audit.Beginning().Requests(t, both(audit.By(i.user()), reads(watched...))), "nor manages the other namespace alone: what it says of its scope would be wrong")

		w.createNamespace("team-late")
		w.apply(late)
		i.awaitActive("it continues once the namespace is there, with its RoleBinding")
		w.installSettings(s, "team-late", "awaited")
		g.Expect(process.Running()).To(Succeed(), "without a restart")
		expectNone(t, w.Audit.Beginning().Requests(t, both(audit.By(i.user()), audit.Forbidden)), "and was refused nothing")
	})

	t.Run("no credentials", func(t *testing.T) {
		w := w.in(t)
		err := w.Get(t.Context(), client.ObjectKey{Namespace: i.namespace, Name: "chandler-credentials"}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Fatalf("this test is about an instance without the Secret: %v", err)
		}
		registry := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			answer.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			answer.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(registry.Close)
		addon := settings("private", w.addonNamespace("team-late"), "one")
		addon.Chart = addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{
			URL: "oci://" + strings.TrimPrefix(registry.URL, "http://") + "/charts/settings", PlainHTTP: ptr.To(true),
		}}
		w.create(stackNamed("team-late", "private", nil, addon))
		w.awaitReason("team-late", "awaited", "private", "SourceUnauthorized", "secretRef")
		w.awaitInstalled(s, "team-late", "settings", "one/none")
		if err := process.ready(); err != nil {
			t.Errorf("an instance without credentials works: %v", err)
		}
	})
}
