// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/process"
)

// overlay is what is installed. Only the pod is a process here, so the certificate isn't cert-manager's.
const overlay = "config/default"

// startChandler installs the overlay, and runs its container as a process, with the arguments and the ServiceAccount of
// its Deployment. It returns when the process is ready, and has refused a first AddonStack.
func (d *demo) startChandler(ctx context.Context) error {
	started := time.Now()
	var err error
	if d.chandler, err = manager.Prepare(filepath.Join(d.root, overlay), d.dir); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "management", "apply", "--server-side", "-f", d.chandler.Manifest); err != nil {
		return err
	}
	args, kubeconfig, err := d.chandler.Container(ctx, d.planes[0], "--artifact-root="+filepath.Join(d.root, "config", "samples", "charts"), "--kubeconfig="+d.file("manager.kubeconfig"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.file("manager.kubeconfig"), kubeconfig, 0o600); err != nil {
		return err
	}
	d.manager, err = process.Start(process.Options{Name: "the manager", Binary: d.file("manager"), Home: d.dir, LogFile: d.file("manager.log"), Args: args})
	if err != nil {
		return err
	}
	if err := d.until(ctx, d.chandler.Ready); err != nil {
		return err
	}
	done(started, "Chandler: process %d is ready, as installed by %s; its log is %s", d.manager.PID(), overlay, d.manager.LogFile)
	return d.createStack(ctx)
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
	return d.awaitCondition(ctx, addonsv1.ValidCondition, metav1.ConditionTrue, "", func(string) {})
}

// editStack changes the spec of the AddonStack.
func (d *demo) editStack(ctx context.Context, edit func(*addonsv1.AddonStackSpec)) error {
	before := d.stack.DeepCopy()
	edit(&d.stack.Spec)
	return d.management.Patch(ctx, d.stack, client.MergeFrom(before))
}

// awaitCondition waits until a condition of the AddonStack has the status, and says a text: "reason: message" has it.
// It tells the message.
func (d *demo) awaitCondition(ctx context.Context, kind string, status metav1.ConditionStatus, text string, tell func(message string)) error {
	return d.until(ctx, func() error {
		stack := &addonsv1.AddonStack{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
			return err
		}
		c := conditions.Get(stack, kind)
		if c == nil || c.Status != status || !strings.Contains(c.Reason+": "+c.Message, text) {
			return fmt.Errorf("condition %s of AddonStack %s isn't as expected yet: %+v", kind, stack.Name, c)
		}
		tell(c.Message)
		return nil
	})
}
