// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/process"
)

// Installation is an overlay whose pod is a process on this host. So its certificate isn't cert-manager's.
type Installation struct {
	// Manifest is the file of its objects, for kubectl to apply. Its Deployment has no replicas.
	Manifest string
	// Metrics is the address of its metrics.
	Metrics string

	dir              string
	deployment       *appsv1.Deployment
	webhooks, health string // addresses
}

// Prepare builds the overlay at a path. The folder gets its manifest and its certificate.
func Prepare(overlay, dir string) (*Installation, error) {
	objects, err := kustomization.Build(overlay)
	if err != nil {
		return nil, err
	}
	deployments, err := kustomization.Find[*appsv1.Deployment](objects, "Deployment")
	if err != nil {
		return nil, err
	}
	i := &Installation{Manifest: filepath.Join(dir, "chandler.yaml"), dir: dir, deployment: deployments[0]}
	for _, address := range []*string{&i.webhooks, &i.health, &i.Metrics} {
		if *address, err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	authority, err := pki.NewAuthority("webhooks")
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server("webhooks")
	if err != nil {
		return nil, err
	}
	manifest, err := i.manifest(objects, authority)
	return i, errors.Join(err, os.WriteFile(i.Manifest, manifest, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
}

// manifest returns the overlay's objects without cert-manager's. Their webhooks are at the process.
func (i *Installation) manifest(objects []*unstructured.Unstructured, authority *pki.Authority) ([]byte, error) {
	var documents []byte
	for _, o := range objects {
		if o.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		if o.GetKind() == "Deployment" {
			if err := unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"); err != nil {
				return nil, err
			}
		}
		kustomization.Redirect(o.Object, "https://"+i.webhooks, base64.StdEncoding.EncodeToString(authority.Certificate))
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		documents = append(append(documents, document...), "---\n"...)
	}
	return documents, nil
}

// Container returns the arguments of the Deployment's container, those that suit a process on this host, and further ones.
// The kubeconfig is that of its ServiceAccount, so the manifest has to be applied.
func (i *Installation) Container(ctx context.Context, plane *controlplane.ControlPlane, further ...string) (args []string, kubeconfig []byte, err error) {
	if args, err = kustomization.Args(i.deployment); err != nil {
		return nil, nil, err
	}
	_, port, err := net.SplitHostPort(i.webhooks)
	if err != nil {
		return nil, nil, err
	}
	args = append(args,
		"--leader-elect-namespace="+i.deployment.Namespace, "--credentials-dir=", "--cache-dir="+filepath.Join(i.dir, "cache"),
		"--allow-loopback", "--allow-duplicate-clusters", // of which there are few, on this host
		"--webhook-cert-dir="+i.dir, "--webhook-port="+port, "--hook-port=0", "--health-addr="+i.health, "--diagnostics-address="+i.Metrics)
	kubeconfig, err = ServiceAccountKubeconfig(ctx, plane, i.deployment.Namespace, i.deployment.Spec.Template.Spec.ServiceAccountName)
	return append(args, further...), kubeconfig, err
}

// Ready asks as a kubelet does, and returns an error until the process is ready.
func (i *Installation) Ready() error {
	response, err := http.Get("http://" + i.health + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New("readyz answers " + response.Status)
	}
	return nil
}
