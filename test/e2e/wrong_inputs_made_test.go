// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/faulty"
	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// newWrongInputs starts a manager and webhooks, with the Cluster prod, servers of charts, and a user of kubectl chandler.
func newWrongInputs(t *testing.T) *wrongInputs {
	t.Helper()
	w := &wrongInputs{tenant: newTenant(t), prod: workloadServer(t, 0)}
	w.elsewhere = w.namespace + "-elsewhere"
	world.hub.createNamespace(t, w.elsewhere)
	w.allowIn(w.elsewhere)
	w.prod.createNamespace(t, w.namespace)
	w.makeCluster("prod", w.prod, labels("env=prod"))
	(&input{tenant: w.tenant}).writeInputCharts()
	w.writeChart("nil", "1.0.0", chart{"values.yaml": "image: {}\n", "templates/text.yaml": configMap("x", "{{ .Values.image.repository.name }}")})
	plain := faulty.Start(t, nil, http.HandlerFunc(serveWrongly))
	secured := faulty.Start(t, registry.NewAuthority(t), http.HandlerFunc(serveWrongly))
	w.replaced = strings.NewReplacer("NS", w.namespace, "PLAIN", plain.Host, "TLS", secured.Host, "DEAD", chandler.FreeAddress(t))
	w.command = w.newPlugin(append(mayAll[:len(mayAll):len(mayAll)], rbacv1.PolicyRule{
		APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"list"},
	})...)
	w.serveWebhooks()
	w.launch("--namespace="+w.namespace+","+w.elsewhere, "--allow-duplicate-clusters=false")
	w.makeStack("edge", labels("edge=yes"), w.small("edge"))
	return w
}

// serveWrongly is a Helm repository at /good, and at other paths what is none.
func serveWrongly(rw http.ResponseWriter, r *http.Request) {
	archive := configMapChart.archive("web", "1.0.0")
	switch root, file, _ := strings.Cut(r.URL.Path[1:], "/"); root {
	case "html":
		_, _ = rw.Write([]byte("<html><body>Please log in</body></html>"))
	case "err":
		http.Error(rw, "maintenance", http.StatusServiceUnavailable)
	case "auth":
		rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		http.Error(rw, "no", http.StatusUnauthorized)
	case "good":
		if file == "web-1.0.0.tgz" {
			_, _ = rw.Write(archive)
			return
		}
		_, _ = rw.Write([]byte("{apiVersion: v1, entries: {web: [{apiVersion: v2, name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]}}"))
	default:
		http.NotFound(rw, r)
	}
}

// ownNamespace makes a namespace on prod for an input alone.
func (w *wrongInputs) ownNamespace(name string) string {
	w.t.Helper()
	w.prod.createNamespace(w.t, w.namespace+"-"+name)
	return w.namespace + "-" + name
}

// wrongSecret makes a Secret of the input's name.
func wrongSecret(data map[string]string) func(*wrongInputs, string) {
	return func(w *wrongInputs, name string) { w.create(w.secret(name, data)) }
}

// brokenCluster makes a Cluster of the input's name, whose kubeconfig is spoiled.
func brokenCluster(spoil func(*wrongInputs, *clientcmdapi.Config)) func(*wrongInputs, string) {
	return func(w *wrongInputs, name string) {
		config, err := clientcmd.Load(w.userOn(workloadServer(w.t, 1), name).Kubeconfig)
		must.Succeed(w.t, err)
		spoil(w, config)
		kubeconfig, err := clientcmd.Write(*config)
		must.Succeed(w.t, err)
		w.writeKubeconfig(name, kubeconfig)
		w.makeClusterObject(name, labels("edge=yes"))
	}
}

// at has a kubeconfig lead to another address.
func at(address string) func(*wrongInputs, *clientcmdapi.Config) {
	return func(w *wrongInputs, config *clientcmdapi.Config) {
		for _, c := range config.Clusters {
			c.Server = "https://" + w.filled("", address)
		}
	}
}

// byUser has a kubeconfig show other credentials.
func byUser(user clientcmdapi.AuthInfo) func(*wrongInputs, *clientcmdapi.Config) {
	return func(_ *wrongInputs, config *clientcmdapi.Config) {
		for name := range config.AuthInfos {
			config.AuthInfos[name] = &user
		}
	}
}

// beforehand is what is there before the AddonStacks, by the inputs' names.
var beforehand = map[string]func(w *wrongInputs, name string){
	"a13": func(w *wrongInputs, name string) {
		w.makeStack(name+"-b", labels("env=none"), w.small("two", after(name+"/one")))
	},
	"b12": wrongSecret(map[string]string{"value.yaml": "text: a"}),
	"b13": wrongSecret(map[string]string{"values.yaml": "hunter2"}),
	"b56": wrongSecret(map[string]string{"values.yaml": "text: a\ntext: b"}),
	"b50": wrongSecret(map[string]string{"user": "me", "pass": "secret"}),
	"b51": wrongSecret(map[string]string{"ca.crt": "hello"}),
	"b55": wrongSecret(map[string]string{"username": "me", "password": "hunter2"}),
	"b23": func(w *wrongInputs, name string) {
		namespace := w.ownNamespace(name)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		must.Succeed(w.t, w.prod.Create(w.t.Context(), quota))
	},
	"b25": func(w *wrongInputs, name string) {
		namespace := w.ownNamespace(name)
		hook := hangingWebhook(w.t, namespace, nil)
		hook.Webhooks[0].Name = "policy.example.org"
		hook.Webhooks[0].ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To("https://" + w.filled(name, "DEAD"))}
		must.Succeed(w.t, w.prod.Create(w.t.Context(), hook))
	},
	"b26": func(w *wrongInputs, name string) {
		mine := w.configMapOf(name)
		mine.Data = map[string]string{"text": "mine"}
		must.Succeed(w.t, w.prod.Create(w.t.Context(), mine, client.FieldOwner("kubectl-create")))
	},
	"b27": func(w *wrongInputs, name string) {
		w.makeStack(name+"-first", labels("env=prod"), w.small(name))
		w.awaitReady(name+"-first", "the release is its own")
	},
	"b32": func(w *wrongInputs, name string) {
		_, err := w.apply(name, w.elsewhere, smallWith(""))
		must.Succeed(w.t, err)
	},
	"c8": func(w *wrongInputs, name string) {
		_, err := w.apply(name, w.namespace, "rollout: {}, "+smallWith(""))
		must.Succeed(w.t, err)
	},
	"c1-refuses": brokenCluster(at("DEAD")),
	"c1-no-name": brokenCluster(at("api.prod.invalid:6443")),
	"c1-silent": func(w *wrongInputs, name string) {
		w.startProxy(name, workloadServer(w.t, 1)).swallow(w.t)
		w.makeClusterObject(name, labels("edge=yes"))
	},
	"c2-authority": brokenCluster(func(w *wrongInputs, config *clientcmdapi.Config) {
		for _, c := range config.Clusters {
			c.CertificateAuthorityData = mustCertificate(w.t).chain
		}
	}),
	"c2-token": brokenCluster(byUser(clientcmdapi.AuthInfo{Token: "not-a-token"})),
	"c3":       func(w *wrongInputs, name string) { w.makeClusterObject(name, labels("edge=yes")) },
	"c4-garbage": func(w *wrongInputs, name string) {
		w.writeKubeconfig(name, []byte("this: is: no kubeconfig"))
		w.makeClusterObject(name, labels("edge=yes"))
	},
	"c4-exec": brokenCluster(byUser(clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "aws", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}})),
	"c5": func(w *wrongInputs, name string) {
		w.makeClusterWithoutRights(name, workloadServer(w.t, 1), labels("edge=yes"))
	},
	"c6": func(w *wrongInputs, name string) {
		w.writeKubeconfig(name, w.userOn(w.prod, "prod").Kubeconfig)
		w.makeClusterObject(name, labels("edge=yes"))
	},
	"c7": func(w *wrongInputs, _ string) {
		w.second = newTenant(w.t)
		w.second.allowIn(w.namespace)
		w.second.launch("--namespace=" + w.namespace)
	},
}

// afterwards is what is done once the add-on of the input's name is installed.
var afterwards = map[string]func(w *wrongInputs, name string){
	"b21": func(w *wrongInputs, name string) {
		pods := &corev1.PodList{}
		poll(w.t, patience, "a pod runs", func() error {
			err := w.prod.List(w.t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": name})
			if err == nil && (len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning) {
				err = errors.New("none does")
			}
			return err
		})
		controlplane.Break(&pods.Items[0], "CrashLoopBackOff")
		must.Succeed(w.t, w.prod.Status().Update(w.t.Context(), &pods.Items[0]))
	},
	"b24": func(w *wrongInputs, name string) {
		const patch = "spec: {selector: {matchLabels: {x: why}}, template: {metadata: {labels: {x: why}}}}"
		_, err := w.apply(name, w.namespace, deployedWith(", patches: [{target: {kind: Deployment}, patch: '"+patch+"'}]"))
		must.Succeed(w.t, err)
	},
}
