// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

// member makes a Secret that is a cluster.
func (h *hub) member(t *testing.T, name string, kubeconfig []byte) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: map[string]string{secrets.DefaultLabel: "true", "stage": "test"}},
		Data:       map[string][]byte{secrets.DefaultKey: kubeconfig},
	}
	h.create(t, s)
	return s
}

func (h *hub) memberName(name string) multicluster.ClusterName {
	return fleet.NameOf(secrets.Name, h.name(name))
}

// A Secret with the label is a cluster: it comes, follows its kubeconfig to another server, and
// goes with the label or with the Secret.
func TestSecrets(t *testing.T) {
	h := start(t, quick(secrets.New(secrets.Options{})))
	s := h.member(t, "one", h.workload.Kubeconfig())
	name := h.memberName("one")
	conn := h.connected(t, name)
	works(t, conn)
	if m, _ := h.Describe(name); m.Labels["stage"] != "test" || m.Origin != "Secret "+h.namespace+"/one" || m.Kubeconfig != nil {
		t.Errorf("%+v", m)
	}

	h.patch(t, s, fmt.Sprintf(`{"data":{%q:%q}}`, secrets.DefaultKey, base64Of(h.other.Kubeconfig())))
	<-conn.Done()
	conn = h.connected(t, name)
	if conn.GetConfig().Host != h.other.Config().Host {
		t.Errorf("connected to %s", conn.GetConfig().Host)
	}

	h.patch(t, s, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, secrets.DefaultLabel))
	h.gone(t, name, conn)
	h.patch(t, s, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, secrets.DefaultLabel))
	conn = h.connected(t, name)
	h.delete(t, s)
	h.gone(t, name, conn)
}

// Of several instances, each has the Secrets that match its filter.
func TestSecretsThatMatch(t *testing.T) {
	h := start(t, quick(secrets.New(secrets.Options{Match: func(labels map[string]string) bool { return labels["stage"] == "prod" }})))
	s := h.member(t, "one", h.workload.Kubeconfig())
	prod := h.member(t, "two", h.workload.Kubeconfig())
	h.patch(t, prod, `{"metadata":{"labels":{"stage":"prod"}}}`)
	conn := h.connected(t, h.memberName("two"))
	if state := h.State(h.memberName(s.Name)); state.Phase != fleet.PhaseUnknown {
		t.Errorf("%+v", state)
	}
	h.patch(t, prod, `{"metadata":{"labels":{"stage":"test"}}}`)
	h.gone(t, h.memberName("two"), conn)
}

// Whoever may write a Secret has the manager read no file and start no program.
func TestHostileSecrets(t *testing.T) {
	h := start(t, quick(secrets.New(secrets.Options{})))
	ran := filepath.Join(t.TempDir(), "ran")
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"exec":        {Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{ran}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}},
		"token-file":  {TokenFile: "/etc/hostname"},
		"impersonate": {Token: "t", Impersonate: "system:admin"},
	} {
		h.member(t, name, fleettest.Kubeconfig(h.workload.Config().Host, h.workload.Config().CAData, user))
		t.Log(h.expect(t, h.memberName(name), fleet.PhaseRefused, fleet.ReasonKubeconfigRefused))
	}
	h.member(t, "empty", nil)
	t.Log(h.expect(t, h.memberName("empty"), fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable))
	expectNoFile(t, ran)
}
