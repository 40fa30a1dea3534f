// SPDX-License-Identifier: Apache-2.0

package virtualcluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

func clientOf(t *testing.T, a *virtualcluster.Address) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(a.Kubeconfig)
	must.Succeed(t, err)
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return client
}

func TestClustersOfOneServer(t *testing.T) {
	long.InCI(t)
	g, ctx := NewWithT(t), t.Context()
	server, err := controlplane.Start(ctx, controlplane.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Stop() })
	user, err := server.AddUser("somebody", "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	authority := virtualcluster.NewAuthority(t)
	address := authority.New(t, user, "a")
	a, b := clientOf(t, address), clientOf(t, authority.New(t, user, "b"))

	for _, client := range []kubernetes.Interface{a, b} {
		watch, err := client.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		applied, err := client.CoreV1().ConfigMaps("default").Apply(ctx, corev1ac.ConfigMap("same", "default").WithData(map[string]string{"key": "value"}),
			metav1.ApplyOptions{FieldManager: "test"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(applied.Namespace).To(Equal("default"))
		g.Expect(applied.Labels).To(BeEmpty())
		g.Expect(applied.ManagedFields[0].FieldsV1.GetRawString()).To(MatchJSON(`{"f:data": {"f:key": {}}}`))
		event := <-watch.ResultChan()
		g.Expect(event.Object.(*corev1.ConfigMap).UID).To(Equal(applied.UID))
		watch.Stop()

		role := &rbacv1.ClusterRole{}
		role.Name = "system:same"
		_, err = client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		all, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all.Items).To(HaveLen(1))
		g.Expect(all.Items[0].Name).To(Equal("system:same"))
		namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namespaces.Items).To(HaveLen(2))
	}
	g.Expect(a.CoreV1().ConfigMaps("default").Delete(ctx, "same", metav1.DeleteOptions{})).To(Succeed())
	_, err = a.CoreV1().ConfigMaps("default").Get(ctx, "same", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	kept, err := b.CoreV1().ConfigMaps("default").Get(ctx, "same", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	kept.Data["key"] = "other"
	_, err = b.CoreV1().ConfigMaps("default").Update(ctx, kept, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	listed, err := b.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed.Items).To(HaveLen(1))
	g.Expect(listed.Items[0].Data).To(HaveKeyWithValue("key", "other"))
	// Metadata comes in protobuf.
	config, err := clientcmd.RESTConfigFromKubeConfig(address.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config = metadata.ConfigFor(config)
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	meta, err := metadata.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	namespaces := meta.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	known, err := namespaces.List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(known.Items).To(HaveLen(2))
	g.Expect(known.Items[0].Name).To(Equal("default"))
	events, err := namespaces.Watch(ctx, metav1.ListOptions{ResourceVersion: known.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	event := <-events.ResultChan()
	g.Expect(event.Type).To(Equal(watch.Added))
	g.Expect(event.Object.(*metav1.PartialObjectMetadata).Name).To(Equal("new"))
	events.Stop()
	// A watch of what isn't renamed begins without an event, too.
	quiet, err := b.RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Param("watch", "true").Timeout(time.Minute).Stream(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(quiet.Close()).To(Succeed())
	_, err = b.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(address.Bytes()).To(BeNumerically(">", 1000))
}
