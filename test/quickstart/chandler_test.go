// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/wait"
)

// install applies config/default as clusterctl would, and runs the Deployment's container as a process. The certificate isn't
// cert-manager's here.
func (d *desk) install() {
	d.t.Helper()
	objects, err := kustomization.Build(filepath.Join(root, "config/default"))
	if err != nil {
		d.t.Fatal(err)
	}
	authority, err := pki.NewAuthority("webhooks")
	if err != nil {
		d.t.Fatal(err)
	}
	pair, err := authority.Server("webhooks")
	if err != nil {
		d.t.Fatal(err)
	}
	d.save("tls.crt", string(pair.Certificate))
	d.save("tls.key", string(pair.Key))
	webhooks := manager.FreeAddress(d.t)
	var manifest strings.Builder
	for _, o := range objects {
		if o.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		kustomization.Redirect(o.Object, "https://"+webhooks, base64.StdEncoding.EncodeToString(authority.Certificate))
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			d.t.Fatal(err)
		}
		manifest.WriteString(string(document) + "---\n")
	}
	d.save("chandler.yaml", manifest.String())
	d.run("kubectl apply --server-side -f chandler.yaml")
	deployments, err := kustomization.Find[*appsv1.Deployment](objects, "Deployment")
	if err != nil {
		d.t.Fatal(err)
	}
	d.launch(deployments[0], webhooks)
}

// launch runs the Deployment's container with its arguments and its ServiceAccount, and returns once it is ready.
func (d *desk) launch(of *appsv1.Deployment, webhooks string) {
	d.t.Helper()
	args, err := kustomization.Args(of)
	if err != nil {
		d.t.Fatal(err)
	}
	account, err := manager.ServiceAccountKubeconfig(d.t.Context(), d.management, of.Namespace, of.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		d.t.Fatal(err)
	}
	binary, err := manager.Build(d.t.Context(), root, d.dir, version)
	if err != nil {
		d.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(webhooks)
	if err != nil {
		d.t.Fatal(err)
	}
	health := manager.FreeAddress(d.t)
	d.manager = manager.New(d.t, manager.Options{Binary: binary, Kubeconfig: account, Args: append(args,
		"--leader-elect-namespace="+of.Namespace, "--artifact-root=", "--credentials-dir=", "--cache-dir="+d.file("cache"), "--allow-loopback",
		"--webhook-cert-dir="+d.dir, "--webhook-port="+port, "--hook-port=0", "--health-addr="+health, "--diagnostics-address="+manager.FreeAddress(d.t))})
	d.manager.Launch()
	wait.Until(d.t, patience, "Chandler is ready", func() error {
		if err := d.manager.Running(); err != nil {
			return err
		}
		response, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New("readyz answers " + response.Status)
		}
		return nil
	})
}

// explain is what helps to understand a command that failed.
func (d *desk) explain() string {
	if d.manager == nil {
		return ""
	}
	return string(d.manager.Tail())
}
