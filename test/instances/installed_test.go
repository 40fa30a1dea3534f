// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// installed returns the text and the secret of each add-on, by name, in a namespace
// of a workload cluster.
func installed(ctx context.Context, s *server, namespace string) (map[string]string, error) {
	found := map[string]string{}
	all := &corev1.ConfigMapList{}
	if err := s.List(ctx, all, client.InNamespace(namespace), client.HasLabels{addonsv1.AddonLabel}); err != nil {
		return nil, err
	}
	for i := range all.Items {
		found[all.Items[i].Name] = all.Items[i].Data["text"] + "/" + all.Items[i].Data["secret"]
	}
	return found, nil
}

// installSettings makes a Cluster, and a stack for it with one add-on, and waits until
// that is installed.
func (w *world) installSettings(s *server, namespace, cluster string) {
	w.t.Helper()
	must.Succeed(w.t, w.makeCluster(w.t.Context(), namespace, cluster, s, nil))
	w.create(stackNamed(namespace, "platform", nil, settings("settings", w.addonNamespace(namespace), "one")))
	w.awaitInstalled(s, namespace, "settings", "one/none")
	w.awaitClusterReady(namespace, cluster)
}

// awaitInstalled waits until an add-on has its text.
func (w *world) awaitInstalled(s *server, namespace, addon, text string) {
	w.t.Helper()
	wait.Until(w.t, patience, "add-on "+addon+" is to be installed", func() error {
		found, err := installed(w.t.Context(), s, w.addonNamespace(namespace))
		if err == nil && found[addon] != text {
			err = fmt.Errorf("%v", found)
		}
		return err
	})
}

// clusterAddon returns that of a Cluster.
func (w *world) clusterAddon(ctx context.Context, namespace, cluster string) (*addonsv1.ClusterAddon, error) {
	ca := &addonsv1.ClusterAddon{}
	return ca, w.Get(ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, ca)
}

// awaitReason waits until the ClusterAddon has an add-on with the reason, whose message has the text.
func (w *world) awaitReason(namespace, cluster, addon, reason, text string) {
	w.t.Helper()
	wait.Until(w.t, patience, "add-on "+addon+" is to have reason "+reason, func() error {
		ca, err := w.clusterAddon(w.t.Context(), namespace, cluster)
		if err != nil {
			return err
		}
		for _, a := range ca.Status.Addons {
			if a.Name == addon && a.Reason == reason && strings.Contains(a.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("%+v", ca.Status.Addons)
	})
}

// awaitClusterReady waits until the ClusterAddon has add-ons, and is Ready.
func (w *world) awaitClusterReady(namespace, name string) {
	w.t.Helper()
	wait.Until(w.t, patience, "ClusterAddon "+name+" is to become Ready", func() error {
		ca, err := w.clusterAddon(w.t.Context(), namespace, name)
		if err != nil {
			return err
		}
		if c := conditions.Get(ca, addonsv1.ReadyCondition); c == nil || c.Status != metav1.ConditionTrue || len(ca.Status.Addons) == 0 || ca.Status.ObservedGeneration != ca.Generation {
			return fmt.Errorf("%+v", ca.Status.Conditions)
		}
		return nil
	})
}

// awaitStackReady waits until the AddonStack is Ready, on at least one Cluster.
func (w *world) awaitStackReady(namespace, name string) {
	w.t.Helper()
	wait.Until(w.t, patience, "AddonStack "+name+" is to become Ready", func() error {
		s := stackNamed(namespace, name, nil)
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if c := s.Status.Clusters; c == nil || c.Total == 0 || !conditions.IsTrue(s, addonsv1.ReadyCondition) {
			return fmt.Errorf("%+v", s.Status)
		}
		return nil
	})
}
