// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// user takes the steps of a model.
type user struct {
	ctx     context.Context
	w       *world
	servers [servers]*server
}

func (u *user) patch(obj client.Object, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return u.w.Patch(u.ctx, obj, client.RawPatch(types.MergePatchType, data))
}

// label sets a label, or takes it away.
func (u *user) label(obj client.Object, key, value string) error {
	var set any = value
	if value == "" {
		set = nil
	}
	return u.patch(obj, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: set}}})
}

func (u *user) remove(obj client.Object) error { return u.w.Delete(u.ctx, obj) }

// createCluster makes a Cluster, with a workload cluster that has nothing in it.
func (u *user) createCluster(namespace string, i int, c clusterModel) error {
	if err := u.wipe(namespace, i); err != nil {
		return err
	}
	labels := map[string]string{"half": halfOf(i), "tier": c.tier}
	if c.filter != "" {
		labels[clusterv1.WatchLabel] = c.filter
	}
	return u.w.makeCluster(u.ctx, namespace, clusterName(i), u.servers[serverOf(i)], labels)
}

// wipe makes a previous Cluster's workload cluster a new one, once nobody works on it.
func (u *user) wipe(namespace string, i int) error {
	gone := func(ctx context.Context) (bool, error) {
		_, err := u.w.clusterAddon(ctx, namespace, clusterName(i))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextTimeout(u.ctx, 100*time.Millisecond, patience, true, gone); err != nil {
		return fmt.Errorf("waiting for the end of the ClusterAddon of the previous Cluster %s/%s: %w", namespace, clusterName(i), err)
	}
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		if err := u.servers[serverOf(i)].DeleteAllOf(u.ctx, kind, client.InNamespace(u.w.halfNamespace(namespace, halfOf(i)))); err != nil {
			return err
		}
	}
	return nil
}

// halfNamespace is where the add-ons of one half of a namespace's Clusters go.
func (w *world) halfNamespace(namespace, half string) string {
	return w.addonNamespace(namespace) + "-" + half
}

func (u *user) deleteCluster(namespace string, i int) error {
	if err := u.remove(clusterNamed(namespace, clusterName(i))); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespace, clusterName(i)+"-kubeconfig"
	return u.remove(secret)
}

func (u *user) createStack(namespace string, s int, m stackModel) error {
	stack := stackNamed(namespace, stackName(s), nil)
	u.shape(stack, s, m)
	if m.filter != "" {
		stack.Labels = map[string]string{clusterv1.WatchLabel: m.filter}
	}
	return u.w.Create(u.ctx, stack)
}

func (u *user) changeStack(namespace string, s int, m stackModel) error {
	stack := stackNamed(namespace, stackName(s), nil)
	u.shape(stack, s, m)
	return u.patch(stack, map[string]any{"spec": map[string]any{"addons": stack.Spec.Addons, "clusterSelector": stack.Spec.ClusterSelector}})
}

func (u *user) shape(stack *addonsv1.AddonStack, s int, m stackModel) {
	selected := tiers
	if m.tier != "" {
		selected = []string{m.tier}
	}
	stack.Spec.ClusterSelector.MatchLabels = map[string]string{"half": halfOf(s)}
	stack.Spec.ClusterSelector.MatchExpressions = tierIs(selected...)
	names := []string{stackName(s) + "-a"}
	if m.second {
		names = append(names, stackName(s)+"-b")
	}
	for _, name := range names {
		a := settings(name, u.w.halfNamespace(stack.Namespace, halfOf(s)), m.text)
		if m.secret >= 0 {
			a = withSecret(a, m.secret)
		}
		stack.Spec.Addons = append(stack.Spec.Addons, a)
	}
}

// withSecret has the add-on take values from a Secret.
func withSecret(a addonsv1.Addon, v int) addonsv1.Addon {
	a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: secretName(v)}}
	return a
}

func (u *user) writeSecret(namespace string, v int, text string) error {
	secret := &corev1.Secret{Data: map[string][]byte{"values.yaml": []byte("secret: \"" + text + "\"\n")}}
	secret.Namespace, secret.Name = namespace, secretName(v)
	err := u.w.Create(u.ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = u.w.Update(u.ctx, secret)
	}
	return err
}

// take takes the steps, at most so many in a second: those of one object one after the
// other, and different objects beside each other.
func (u *user) take(steps []step, perSecond float64) error {
	queues := map[string]chan step{}
	failures := make(chan error, len(steps))
	var working sync.WaitGroup
	pace := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer pace.Stop()
	for _, s := range steps {
		queue, ok := queues[s.object]
		if !ok {
			queue = make(chan step, len(steps))
			queues[s.object] = queue
			working.Go(func() {
				for s := range queue {
					if err := s.do(u); err != nil {
						failures <- fmt.Errorf("%s: %s: %w", s.object, s.what, err)
					}
				}
			})
		}
		queue <- s
		<-pace.C
	}
	for _, queue := range queues {
		close(queue)
	}
	working.Wait()
	close(failures)
	return <-failures
}

// tierIs selects Clusters by their tier.
func tierIs(values ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: values}}
}
