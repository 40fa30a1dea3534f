// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

func start(t *testing.T, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	begin := time.Now()
	c, err := controlplane.Start(t.Context(), o)
	must.Succeed(t, err)
	t.Logf("control plane %q started in %s", c.Name(), time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return client
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.chandler.test}
spec:
  group: test.chandler.test
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestWithoutWorkers(t *testing.T) {
	long.Test(t)
	dir := t.TempDir()
	auditLog := filepath.Join(dir, "audit.log")
	crdFile := filepath.Join(dir, "crd.yaml")
	must.Succeed(t, os.WriteFile(crdFile, []byte(crd), 0o600))
	c := start(t, controlplane.Options{Name: "mgmt", AuditLog: auditLog, CRDPaths: []string{crdFile}})
	admin := clientset(t, c.Config())

	t.Run("the kubeconfig stands alone", func(t *testing.T) {
		g := NewWithT(t)
		loaded, err := clientcmd.Load(c.Kubeconfig())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(loaded.CurrentContext).To(Equal("mgmt-admin@mgmt"))
		config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig())
		g.Expect(err).NotTo(HaveOccurred())
		_, err = clientset(t, config).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("CRDs are served", func(t *testing.T) {
		g := NewWithT(t)
		resources, err := admin.Discovery().ServerResourcesForGroupVersion("test.chandler.test/v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resources.APIResources).To(ContainElement(HaveField("Kind", "Widget")))
	})

	t.Run("users have the rights of RBAC and are in the audit log", func(t *testing.T) {
		g := NewWithT(t)
		user, err := c.AddUser("jane", "devs")
		g.Expect(err).NotTo(HaveOccurred())
		jane := clientset(t, user.Config)
		_, err = jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		review, err := jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.UserInfo.Groups).To(ContainElement("devs"))

		g.Eventually(func() (verbs []string) {
			events, err := audit.Read(auditLog)
			g.Expect(err).NotTo(HaveOccurred())
			for _, event := range events {
				if event.User.Username == "jane" {
					verbs = append(verbs, event.Verb)
				}
			}
			return verbs
		}).Should(Equal([]string{"list", "create"}))
	})

	t.Run("ServiceAccounts get tokens", func(t *testing.T) {
		g := NewWithT(t)
		accounts := admin.CoreV1().ServiceAccounts("default")
		_, err := accounts.Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		token, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		config := rest.AnonymousClientConfig(c.Config())
		config.BearerToken = token.Status.Token
		review, err := clientset(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:robot"))
	})
}

func TestOutage(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	c := start(t, controlplane.Options{Name: "outage"})
	impatient := c.Config()
	impatient.Timeout = 500 * time.Millisecond
	get := func(config *rest.Config) error {
		_, err := clientset(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		return err
	}
	_, err := clientset(t, c.Config()).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(c.PauseAPIServer()).To(Succeed())
	g.Expect(os.IsTimeout(get(impatient))).To(BeTrue())
	g.Expect(c.ResumeAPIServer()).To(Succeed())
	g.Expect(get(c.Config())).To(Succeed())

	g.Expect(c.StopAPIServer()).To(Succeed())
	_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.Config().Host, "https://"))
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
	g.Expect(c.PauseAPIServer()).NotTo(Succeed())
	g.Expect(c.StartAPIServer(t.Context())).To(Succeed())
	g.Expect(get(c.Config())).To(Succeed())
	g.Expect(c.StartAPIServer(t.Context())).To(MatchError(ContainSubstring("is running")))
}

func TestStartAll(t *testing.T) {
	long.Test(t)
	g := NewWithT(t)
	planes, err := controlplane.StartAll(t.Context(), controlplane.Options{Name: "a"}, controlplane.Options{Name: "b"})
	g.Expect(err).NotTo(HaveOccurred())
	for i, name := range []string{"a", "b"} {
		g.Expect(planes[i].Name()).To(Equal(name))
		g.Expect(planes[i].Stop()).To(Succeed())
	}
	g.Expect(planes[0].Config().Host).NotTo(Equal(planes[1].Config().Host))
}
