// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/must"
)

// valuesSecret is the name of the Secret with the text of component withSecret.
const valuesSecret = "values"

// stackOf is an AddonStack as the model has it.
func (f *fleet) stackOf(m *model, s int) *addonsv1.AddonStack {
	of := &m.stacks[s]
	object := &addonsv1.AddonStack{ObjectMeta: f.named(stackName(s))}
	if of.paused {
		object.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	}
	if of.orphan {
		object.Spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	}
	object.Spec.Rollout = of.rollout.DeepCopy()
	object.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: of.selector}
	for k := range components {
		if of.has[k] {
			object.Spec.Addons = append(object.Spec.Addons, f.addonOf(m, k))
		}
	}
	if of.isFree {
		object.Spec.RemovalLimit = ptr.To(intstr.FromString("100%"))
	}
	if len(of.allowed) > 0 || of.leaving != nil {
		object.Spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: slices.Sorted(maps.Keys(of.allowed))}
		if of.leaving != nil {
			object.Spec.AllowedRemovals.ClusterSelector = &metav1.LabelSelector{MatchLabels: of.leaving}
		}
	}
	return object
}

func (f *fleet) addonOf(m *model, k int) addonsv1.Addon {
	values := map[string]any{"prefix": componentName(k), "extra": m.components[k].extra}
	a := addonsv1.Addon{Name: m.release(k), Namespace: f.namespace, Chart: addonsv1.ChartSource{Path: componentName(k)}}
	if m.components[k].adopt {
		a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt
	}
	if k == withSecret {
		a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: valuesSecret}}
	} else {
		values["text"] = m.text(k)
	}
	raw, err := json.Marshal(values)
	must.Succeed(f.t, err)
	a.Values = &apiextensionsv1.JSON{Raw: raw}
	return a
}

// text of a component's ConfigMap.
func (m *model) text(k int) string { return fmt.Sprintf("text %d", m.components[k].text) }

// writeStack makes or changes an AddonStack.
func (f *fleet) writeStack(s int) {
	f.t.Helper()
	wanted := f.stackOf(f.now(), s)
	if len(wanted.Spec.Addons) == 0 {
		f.remove(f.hub(), wanted)
	} else if !edit(f, &addonsv1.AddonStack{ObjectMeta: wanted.ObjectMeta}, func(o *addonsv1.AddonStack) {
		o.Spec = wanted.Spec
		delete(o.Annotations, clusterv1.PausedAnnotation)
		for key, value := range wanted.Annotations {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value)
		}
	}) {
		f.create(f.hub(), wanted)
	}
}

// writeValues makes or changes the Secret with the text of component withSecret.
func (f *fleet) writeValues() {
	f.t.Helper()
	data := map[string][]byte{"values.yaml": fmt.Appendf(nil, "text: %q\n", f.now().text(withSecret))}
	secret := &corev1.Secret{ObjectMeta: f.named(valuesSecret)}
	if !edit(f, secret, func(o *corev1.Secret) { o.Data = data }) {
		f.create(f.hub(), &corev1.Secret{ObjectMeta: f.named(valuesSecret), Data: data})
	}
	f.isMissing = false
}

// writeCluster makes a Cluster as Cluster API would, with its kubeconfig.
func (f *fleet) writeCluster(c int) {
	f.t.Helper()
	f.writeKubeconfig(c)
	object := &clusterv1.Cluster{ObjectMeta: f.named(clusterName(c))}
	object.Labels = f.now().clusters[c].labels
	object.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	f.create(f.hub(), object)
	f.reportProvisioned(f.hub(), c)
}

// reportProvisioned does what Cluster API does with a Cluster whose control plane is up.
func (f *fleet) reportProvisioned(s *apiserver.Server, c int) {
	f.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := &clusterv1.Cluster{}
		if err := s.Get(f.ctx(), client.ObjectKey{Namespace: f.namespace, Name: clusterName(c)}, object); err != nil {
			return err
		}
		object.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		return s.Status().Update(f.ctx(), object)
	})
	must.Succeed(f.t, err)
}

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// writeKubeconfig makes or changes the kubeconfig of a Cluster, according to how it is to be reached.
func (f *fleet) writeKubeconfig(c int) {
	f.t.Helper()
	data := bytes.Clone(f.kubeconf[c])
	if f.links[c] == misled {
		data = port.ReplaceAll(data, []byte("127.0.0.1:1"))
	}
	secret := &corev1.Secret{ObjectMeta: f.named(clusterName(c) + "-kubeconfig"), Type: clusterv1.ClusterSecretType}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: clusterName(c)}
	secret.Data = map[string][]byte{"value": data}
	if f.links[c] == without {
		f.remove(f.hub(), secret)
	} else if err := f.hub().Create(f.ctx(), secret.DeepCopy()); apierrors.IsAlreadyExists(err) {
		edit(f, &corev1.Secret{ObjectMeta: secret.ObjectMeta}, func(o *corev1.Secret) { o.Data = secret.Data })
	} else if err != nil {
		f.t.Fatal(err)
	}
}
