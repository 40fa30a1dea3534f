// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// certDirFlag has a default, and so isn't in the arguments of a Deployment.
const (
	certDirFlag    = "--webhook-cert-dir="
	defaultCertDir = "/tmp/k8s-webhook-server/serving-certs"
)

// pod is what a kubelet makes of a Deployment's container: arguments, environment,
// files, and the token of the ServiceAccount.
type pod struct {
	w          *world
	deployment *appsv1.Deployment
	name       string
	dir        string
}

func (w *world) newPod(d *appsv1.Deployment) *pod {
	w.t.Helper()
	p := &pod{w: w, deployment: d, name: fmt.Sprintf("%s-%d", d.Name, w.pods.Add(1))}
	p.dir = filepath.Join(w.root.TempDir(), p.name)
	must.Succeed(w.t, os.Mkdir(p.dir, 0o755))
	return p
}

func (p *pod) spec() *corev1.PodSpec        { return &p.deployment.Spec.Template.Spec }
func (p *pod) container() *corev1.Container { return &p.spec().Containers[0] }
func (p *pod) namespace() string            { return p.deployment.Namespace }

// args are the container's, with its variables and mounts in place.
func (p *pod) args() []string {
	p.w.t.Helper()
	args, err := kustomization.Args(p.deployment)
	must.Succeed(p.w.t, err)
	mounts := p.mount()
	if _, ok := mounts[defaultCertDir]; ok {
		args = append(args, certDirFlag+defaultCertDir)
	}
	for i := range args {
		name, value, _ := strings.Cut(args[i], "=")
		if dir, ok := mounts[strings.TrimSuffix(value, "/")]; ok {
			args[i] = name + "=" + dir
		}
	}
	return args
}

// mount makes the files of the volumes as they are now, and returns the directories
// by mount path.
func (p *pod) mount() map[string]string {
	p.w.t.Helper()
	mounts := map[string]string{}
	for _, m := range p.container().VolumeMounts {
		dir := filepath.Join(p.dir, "volumes", m.Name)
		must.Succeed(p.w.t, os.MkdirAll(dir, 0o755))
		mounts[m.MountPath] = dir
		for name, data := range p.files(m.Name) {
			must.Succeed(p.w.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	return mounts
}

// files are those of a volume. A kubelet wouldn't start a pod whose volume is missing.
func (p *pod) files(volume string) map[string][]byte {
	p.w.t.Helper()
	for _, v := range p.spec().Volumes {
		if v.Name != volume {
			continue
		}
		files, optional := map[string][]byte{}, false
		var err error
		switch {
		case v.Secret != nil:
			optional = ptr.Deref(v.Secret.Optional, false)
			secret := &corev1.Secret{}
			err = p.w.Get(p.w.t.Context(), client.ObjectKey{Namespace: p.namespace(), Name: v.Secret.SecretName}, secret)
			files = secret.Data
		case v.ConfigMap != nil:
			optional = ptr.Deref(v.ConfigMap.Optional, false)
			configMap := &corev1.ConfigMap{}
			err = p.w.Get(p.w.t.Context(), client.ObjectKey{Namespace: p.namespace(), Name: v.ConfigMap.Name}, configMap)
			for key, text := range configMap.Data {
				files[key] = []byte(text)
			}
			for key, data := range configMap.BinaryData {
				files[key] = data
			}
		case v.EmptyDir != nil:
		default:
			p.w.t.Fatalf("Deployment %s: volume %s is of a kind that this test knows nothing of", p.deployment.Name, v.Name)
		}
		if err != nil && (!optional || !apierrors.IsNotFound(err)) {
			p.w.t.Fatalf("Deployment %s: volume %s: %v", p.deployment.Name, v.Name, err)
		}
		return files
	}
	p.w.t.Fatalf("Deployment %s has no volume %s", p.deployment.Name, volume)
	return nil
}

// kubeconfig has a token of the pod's ServiceAccount, and no other right.
func (p *pod) kubeconfig() []byte {
	p.w.t.Helper()
	data, err := manager.ServiceAccountKubeconfig(p.w.t.Context(), p.w.ControlPlane, p.namespace(), p.spec().ServiceAccountName)
	must.Succeed(p.w.t, err)
	return data
}

// user is who the pod is on the management cluster.
func (p *pod) user() string {
	return serviceaccount.MakeUsername(p.namespace(), p.spec().ServiceAccountName)
}
