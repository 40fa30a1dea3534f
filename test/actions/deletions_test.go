// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// deleteRevision deletes the newest ControllerRevision of a stack, or all of them.
func (f *fleet) deleteRevision() bool {
	s := f.random.IntN(stacks)
	isAll, selects := f.random.IntN(2) == 0, client.MatchingLabels{addonsv1.StackNameLabel: stackName(s)}
	f.act("delete ControllerRevisions of %s, all: %t", stackName(s), isAll)
	all := &appsv1.ControllerRevisionList{}
	must.Succeed(f.t, f.hub().List(f.ctx(), all, client.InNamespace(f.namespace), selects))
	newest := int64(0)
	for i := range all.Items {
		newest = max(newest, all.Items[i].Revision)
	}
	for i := range all.Items {
		if isAll || all.Items[i].Revision == newest {
			f.remove(f.hub(), &all.Items[i])
		}
	}
	return true
}

// deleteClusterAddon deletes one, or all of them.
func (f *fleet) deleteClusterAddon() bool {
	c, isAll := f.random.IntN(len(f.workloads)), f.random.IntN(4) == 0
	f.act("delete the ClusterAddon of %s, all: %t", clusterName(c), isAll)
	f.change(func(m *model) {
		for i := range m.clusters {
			if i == c || isAll {
				m.clusters[i].epoch++
			}
		}
	}, func() {
		for i := range f.workloads {
			if i == c || isAll {
				f.remove(f.hub(), &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(i))})
			}
		}
	})
	return true
}

// deleteValues deletes the Secret that an add-on has values from, or makes it again.
func (f *fleet) deleteValues() bool {
	if f.isMissing {
		f.act("make the Secret with values again")
		f.writeValues()
		return true
	}
	f.act("delete the Secret with values")
	f.remove(f.hub(), &corev1.Secret{ObjectMeta: f.named(valuesSecret)})
	f.isMissing = true
	return true
}

// deleteCRD deletes a kind of Chandler with all its objects, installs it again, and applies the AddonStacks again.
func (f *fleet) deleteCRD() bool {
	kinds := []string{"addonstacks", "clusteraddons"}
	kind := kinds[f.random.IntN(len(kinds))]
	pause := time.Duration(f.random.IntN(8)) * time.Second
	f.act("delete the CRD of %s, and make it again after %s", kind, pause)
	f.change(func(m *model) {
		if kind == "clusteraddons" {
			m.epoch++
		}
	}, func() {
		f.replaceCRD(f.hub(), kind+"."+addonsv1.GroupVersion.Group, pause)
		for s := range stacks {
			if object := f.stackOf(f.now(), s); kind == "addonstacks" && f.now().stacks[s].exists && len(object.Spec.Addons) > 0 {
				wait.Until(f.t, time.Minute, "the kind is served again", func() error {
					return client.IgnoreAlreadyExists(f.hub().Create(f.ctx(), object))
				})
			}
		}
	})
	f.remade()
	return true
}

func (f *fleet) replaceCRD(s *apiserver.Server, name string, pause time.Duration) {
	f.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(f.t, s.Get(f.ctx(), client.ObjectKey{Name: name}, crd))
	f.remove(s, crd)
	wait.Until(f.t, time.Minute, "the CRD is gone", func() error {
		err := s.Get(f.ctx(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it isn't: %w", err)
	})
	time.Sleep(pause)
	again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
	f.create(s, again)
	wait.Until(f.t, time.Minute, "the CRD is served", func() error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(addonsv1.GroupVersion.WithKind(crd.Spec.Names.ListKind))
		return s.List(f.ctx(), list)
	})
}

// deleteInCluster deletes an object, records of releases, or the kind of a chart, of a workload cluster.
func (f *fleet) deleteInCluster() bool {
	x, what := share{f.random.IntN(len(f.workloads)), f.random.IntN(components)}, f.random.IntN(4)
	if f.links[x.cluster] == paused || f.links[x.cluster] == stopped || f.now().shares[x].standing != wanted {
		return false
	}
	s, name := f.workloads[x.cluster], componentName(x.component)
	switch what {
	case 0:
		f.act("delete ConfigMap %s-settings of %s", name, clusterName(x.cluster))
		f.remove(s, &corev1.ConfigMap{ObjectMeta: f.named(name + "-settings")})
	case 1:
		f.act("delete Secret %s-password of %s", name, clusterName(x.cluster))
		f.remove(s, &corev1.Secret{ObjectMeta: f.named(name + "-password")})
	case 2:
		release := f.now().release(x.component)
		f.act("delete the records of %s of %s", release, clusterName(x.cluster))
		must.Succeed(f.t, s.DeleteAllOf(f.ctx(), &corev1.Secret{}, client.InNamespace(f.namespace), client.MatchingLabels{"name": release, "owner": "helm"}))
		f.evaluates[x.cluster].recordless[x.component] = time.Now()
	default:
		if x.component != withCRDs && x.component != withTemplate {
			return false
		}
		crd := "things." + name + "." + f.id + ".actions.test"
		f.act("delete CRD %s of %s", crd, clusterName(x.cluster))
		f.remove(s, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}})
	}
	return true
}
