// SPDX-License-Identifier: Apache-2.0

package observed_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestEndlessAnswers reads from a workload cluster whose answers have no end.
func TestEndlessAnswers(t *testing.T) {
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, "{")
		for err == nil {
			_, err = w.Write(spaces)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	kubeconfig := fleettest.Kubeconfig(s.URL, ca, &clientcmdapi.AuthInfo{Token: "t"})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(file, kubeconfig, 0o600))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig}}
	management := fake.NewClientBuilder().WithObjects(secret).Build()
	of := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}, Spec: addonsv1.ClusterAddonSpec{ClusterName: "prod"}}
	for by, file := range map[string]string{"the Secret of the cluster": "", "a file": file} {
		c, err := observed.Workload(t.Context(), management, of, file)
		must.Succeed(t, err)
		for what, read := range map[string]error{
			"an object": c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Secret{}),
			"a list":    c.List(t.Context(), &corev1.SecretList{}),
		} {
			if _, limited := errors.AsType[*fleet.LimitError](read); !limited {
				t.Errorf("%s, by %s: %v", what, by, read)
			}
		}
	}
}
