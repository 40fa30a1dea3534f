// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// workload returns the workload control plane of this number.
func workload(t *testing.T, number int) *server {
	t.Helper()
	s, err := workloadServers[number]()
	must.Succeed(t, err)
	return s
}

// hosted tells which world has a Cluster on a workload control plane, which all share.
var hosted sync.Map

// makeCluster makes a Cluster whose control plane is up, with a kubeconfig Secret
// that leads to the server, as a user of this Cluster's own.
func (w *world) makeCluster(ctx context.Context, namespace, name string, s *server, labels map[string]string) error {
	if other, taken := hosted.LoadOrStore(s.Name()+" "+namespace+"/"+name, w.id); taken && other != w.id {
		return fmt.Errorf("another test has a Cluster %s/%s on %s, too: the release records there would be those of both", namespace, name, s.Name())
	}
	user, err := s.AddUser(w.clusterUser(namespace, name), "system:masters")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": user.Kubeconfig}}
	secret.Namespace, secret.Name = namespace, name+"-kubeconfig"
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: name}
	if err := w.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	c := clusterNamed(namespace, name)
	c.Labels = labels
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	if err := w.Create(ctx, c); err != nil {
		return fmt.Errorf("creating Cluster %s/%s: %w", namespace, name, err)
	}
	before := c.DeepCopy()
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return w.Status().Patch(ctx, c, client.MergeFrom(before))
}

func clusterNamed(namespace, name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// clusterUser is who instances are on the workload cluster of this name.
func (w *world) clusterUser(namespace, name string) string {
	return "chandler:" + w.id + ":" + namespace + ":" + name
}

// addonNamespace is where the add-ons of stacks of a namespace go: nobody else's do.
func (w *world) addonNamespace(namespace string) string { return w.id + "-" + namespace }

// stackNamed is an AddonStack that selects Clusters by labels, all if there are none. It
// may lose them all at once.
func stackNamed(namespace, name string, selector map[string]string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: selector}
	s.Spec.Addons, s.Spec.RemovalLimit = addons, ptr.To(intstr.FromString("100%"))
	return s
}

// settings is an add-on with the chart.
func settings(name, namespace, text string) addonsv1.Addon {
	return addonsv1.Addon{
		Name: name, Namespace: namespace, Chart: addonsv1.ChartSource{Path: chartFile},
		Values: valuesOf(map[string]any{"text": text}),
	}
}

func valuesOf(values map[string]any) *apiextensionsv1.JSON {
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // of a literal
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// clusterOf is the Cluster that a user on a workload cluster is for.
func (w *world) clusterOf(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "chandler:"+w.id+":")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}
