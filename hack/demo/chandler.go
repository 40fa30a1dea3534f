// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/process"
)

// overlay is what is installed. Only the pod is a process here, so the certificate isn't cert-manager's.
const overlay = "config/default"

// installation is the overlay, and where its process serves what.
type installation struct {
	objects                          []*unstructured.Unstructured
	webhooks, hooks, health, metrics string // addresses
}

// prepareChandler builds the overlay for a process on this host. It returns the file of the CRDs.
func (d *demo) prepareChandler() (crds string, err error) {
	if d.chandler.objects, err = kustomization.Build(filepath.Join(d.root, overlay)); err != nil {
		return "", err
	}
	for _, address := range []*string{&d.chandler.webhooks, &d.chandler.hooks, &d.chandler.health, &d.chandler.metrics} {
		if *address, err = process.FreeAddress(); err != nil {
			return "", err
		}
	}
	authority, err := pki.NewAuthority("webhooks")
	if err != nil {
		return "", err
	}
	pair, err := authority.Server("webhooks")
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(d.file("tls.crt"), pair.Certificate, 0o600), os.WriteFile(d.file("tls.key"), pair.Key, 0o600)); err != nil {
		return "", err
	}
	var documents []byte
	for _, o := range d.chandler.objects {
		kustomization.Redirect(o.Object, "https://"+d.chandler.webhooks, base64.StdEncoding.EncodeToString(authority.Certificate))
		if o.GetKind() == "CustomResourceDefinition" {
			document, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", err
			}
			documents = append(append(documents, document...), "---\n"...)
		}
	}
	return d.file("crds.yaml"), os.WriteFile(d.file("crds.yaml"), documents, 0o600)
}

// elsewhere are the kinds of the overlay that are installed with the API server, are cert-manager's, or need nodes.
var elsewhere = []string{"CustomResourceDefinition", "Certificate", "Issuer", "Deployment"}

// startChandler installs the overlay, and runs its container as a process, with the arguments and the ServiceAccount of
// its Deployment. It returns when the process is ready, and has refused a first AddonStack.
func (d *demo) startChandler(ctx context.Context) error {
	started := time.Now()
	for _, o := range d.chandler.objects {
		if slices.Contains(elsewhere, o.GetKind()) {
			continue
		}
		//nolint:staticcheck // Client.Apply takes typed configurations, and these are of any kind
		if err := d.management.Patch(ctx, o, client.Apply, client.FieldOwner("kubectl")); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	deployments, err := kustomization.Find[*appsv1.Deployment](d.chandler.objects, "Deployment")
	if err != nil {
		return err
	}
	of := deployments[0]
	args, err := kustomization.Args(of)
	if err != nil {
		return err
	}
	kubeconfig, err := manager.ServiceAccountKubeconfig(ctx, d.planes[0], of.Namespace, of.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.file("manager.kubeconfig"), kubeconfig, 0o600); err != nil {
		return err
	}
	d.manager, err = process.Start(process.Options{
		Name: "the manager", Binary: d.file("manager"), Home: d.dir, LogFile: d.file("manager.log"),
		Args: append(args,
			"--kubeconfig="+d.file("manager.kubeconfig"), "--leader-elect-namespace="+of.Namespace,
			"--artifact-root="+d.charts(), "--credentials-dir=", "--cache-dir="+d.file("cache"),
			"--allow-loopback", // where the workload clusters are
			"--webhook-cert-dir="+d.dir, "--webhook-port="+port(d.chandler.webhooks), "--hook-port="+port(d.chandler.hooks),
			"--health-addr="+d.chandler.health, "--diagnostics-address="+d.chandler.metrics),
	})
	if err != nil {
		return err
	}
	if err := d.until(ctx, d.ready); err != nil {
		return err
	}
	done(started, "Chandler: process %d is ready, as installed by %s; its log is %s", d.manager.PID(), overlay, d.manager.LogFile)
	return d.createStack(ctx)
}

// port returns that of an address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// ready asks as a kubelet does.
func (d *demo) ready() error {
	response, err := http.Get("http://" + d.chandler.health + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New("the manager's readyz answers " + response.Status)
	}
	return nil
}

// stackFile is the AddonStack that the demo applies.
const stackFile = "config/samples/addonstack.yaml"

// degradedAfter is as short as it may be, so that nobody has to wait.
const degradedAfter = 10 * time.Second

// createStack applies the AddonStack, first with a mistake.
func (d *demo) createStack(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(d.root, stackFile))
	if err != nil {
		return err
	}
	d.stack = &addonsv1.AddonStack{}
	if err := yaml.UnmarshalStrict(data, d.stack); err != nil {
		return fmt.Errorf("%s: %w", stackFile, err)
	}
	d.stack.Spec.DegradedAfterSeconds = ptr.To(int32(degradedAfter.Seconds()))
	wrong := d.stack.DeepCopy()
	wrong.Spec.Addons[0].DependsOn = []string{"nobody"}
	refusal := d.management.Create(ctx, wrong)
	if refusal == nil {
		return errors.New("no webhook refuses an AddonStack with a dependency that isn't there")
	}
	fmt.Printf("  An AddonStack with a mistake is refused at once: %v\n", refusal)
	if err := d.management.Create(ctx, d.stack); err != nil {
		return err
	}
	return d.until(ctx, func() error {
		stack := &addonsv1.AddonStack{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
			return err
		}
		valid := meta.FindStatusCondition(stack.Status.Conditions, addonsv1.ValidCondition)
		if valid == nil || valid.Status != metav1.ConditionTrue {
			return fmt.Errorf("AddonStack %s isn't valid yet: %+v", stack.Name, valid)
		}
		return nil
	})
}
