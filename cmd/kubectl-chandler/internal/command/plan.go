// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

func (c *call) plan() *cobra.Command {
	file, revision, timeout := "", "", time.Duration(0)
	cmd := c.command("plan STACK", "Show what a change of a stack would do to its clusters, before it does it", cobra.MaximumNArgs(1), func() error {
		if (file == "") != (len(c.args) == 1) || file != "" && revision != "" {
			return errors.New("name a stack, maybe with --revision, or a file with -f")
		}
		ctx, cancel := context.WithTimeout(c, timeout)
		defer cancel()
		wanted, shown := []addonsv1.AddonPlan(nil), []addonsv1.AddonPlan(nil)
		is, spec, err := &unstructured.Unstructured{}, addonsv1.AddonPlanSpec{Revision: revision}, error(nil)
		if file != "" {
			if is, err = c.fromFile(ctx, file); err == nil {
				spec.Template, err = templateOf(is)
			}
		} else {
			is.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
			err = c.read(is, c.args[0])
		}
		if err == nil {
			wanted, err = plansFor(is, spec)
		}
		for i := 0; err == nil && i < len(wanted); i++ {
			if err = c.await(ctx, &wanted[i]); err == nil {
				shown = append(shown, wanted[i])
				c.verdict = worse(c.verdict, verdictOf(&wanted[i].Status))
			}
		}
		if err != nil {
			return err
		}
		return c.print("Plans", &addonsv1.AddonPlanList{Items: shown}, "Plans", shown)
	})
	cmd.Long = "Show what a change of a stack would do to its clusters, before it does it: of the revision that is rolled out, of another one,\n" +
		"or of the stack in a file, which is what if. A provider instance asks the clusters; nothing is changed.\n" +
		"It exits with 0 if nothing would change, 2 if something would, 1 if something is refused or would be deleted, and 3 if it failed."
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with an AddonStack, as it might be; - for the standard input")
	cmd.Flags().StringVar(&revision, "revision", "", "name of another revision than the one that is rolled out")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Minute, "how long to wait for the plan")
	return cmd
}

// fromFile returns the AddonStack in a file as the API server would keep it. The user has to be allowed to write it.
func (c *call) fromFile(ctx context.Context, file string) (*unstructured.Unstructured, error) {
	text, err := []byte(nil), error(nil)
	if file == "-" {
		text, err = io.ReadAll(c.In)
	} else {
		text, err = os.ReadFile(file)
	}
	is := &unstructured.Unstructured{}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &is.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if is.GroupVersionKind() != addonsv1.GroupVersion.WithKind("AddonStack") {
		return nil, fmt.Errorf("%s has a %s, and not an AddonStack of %s", file, is.GroupVersionKind(), addonsv1.GroupVersion)
	}
	if is.GetNamespace() == "" {
		is.SetNamespace(c.namespace)
	}
	return is, c.tryOut(ctx, is)
}

// tryOut writes a stack by a dry run, over the one that is there.
func (c *call) tryOut(ctx context.Context, is *unstructured.Unstructured) error {
	known := &unstructured.Unstructured{}
	known.SetGroupVersionKind(is.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(is), known)
	switch {
	case apierrors.IsNotFound(err):
		err = c.client.Create(ctx, is, client.DryRunAll)
	case err == nil:
		known.Object["spec"] = is.Object["spec"]
		*is = *known
		err = c.client.Update(ctx, is, client.DryRunAll)
	}
	if err != nil {
		return fmt.Errorf("AddonStack %s: %w", is.GetName(), err)
	}
	return nil
}

// templateOf returns the spec of a stack as the template of a plan.
func templateOf(is *unstructured.Unstructured) (*apiextensionsv1.JSON, error) {
	text, err := json.Marshal(is.Object["spec"])
	return &apiextensionsv1.JSON{Raw: text}, err
}

// plansFor returns plans for a stack: one or, if several instances manage it, one for each of these.
func plansFor(is *unstructured.Unstructured, spec addonsv1.AddonPlanSpec) (plans []addonsv1.AddonPlan, _ error) {
	const kept = 3600 // seconds, if nobody deletes it
	spec.StackName, spec.TTLSecondsAfterFinished = is.GetName(), new(int32(kept))
	filter, filtered := is.GetLabels()[clusterv1.WatchLabel]
	filters := []string{filter}
	if filter == addonsv1.SharedWatchFilter {
		filters = nil
		instances, _, _ := unstructured.NestedSlice(is.Object, "status", "instances")
		for _, each := range instances {
			of, _ := each.(map[string]any)
			name, _ := of["watchFilter"].(string)
			filters = append(filters, name)
		}
	}
	for _, filter := range filters {
		p := addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: is.GetNamespace(), GenerateName: is.GetName() + "-"}, Spec: spec}
		if filtered {
			p.Labels = map[string]string{clusterv1.WatchLabel: filter}
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("AddonStack %s is meant for several provider instances, and its status names none", is.GetName())
	}
	return plans, nil
}

// await makes a plan, waits for its end, and deletes it. It says now and then how far the plan is. A plan that failed is an error.
func (c *call) await(ctx context.Context, p *addonsv1.AddonPlan) error {
	if err := c.client.Create(ctx, p); err != nil {
		return fmt.Errorf("making a plan: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := c.client.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			fmt.Fprintf(c.ErrOut, "AddonPlan %s is left: %s\n", p.Name, printing.Clean(err.Error()))
		}
	}()
	said := ""
	for !p.IsFinished() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("AddonPlan %s isn't finished: %w", p.Name, context.Cause(ctx))
		case <-time.After(pause):
		}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return fmt.Errorf("reading the plan: %w", err)
		}
		if now := progressOf(p); now != said {
			said = now
			fmt.Fprintln(c.ErrOut, printing.Clean(said))
		}
	}
	if p.Status.Phase == addonsv1.PlanFailed {
		return fmt.Errorf("AddonStack %s: %s: %s", p.Spec.StackName, conditions.GetReason(p, addonsv1.CompleteCondition), conditions.GetMessage(p, addonsv1.CompleteCondition))
	}
	return nil
}

// progressOf returns how far a plan is.
func progressOf(p *addonsv1.AddonPlan) string {
	s := &p.Status
	if s.Phase != addonsv1.PlanRunning {
		return conditions.GetMessage(p, addonsv1.CompleteCondition)
	}
	c := s.Clusters
	return fmt.Sprintf("asked %d of %s", c.Same+c.Changed+c.Held+c.Refused+c.NotChecked+c.Unreachable, printing.Number(c.Total, "cluster"))
}

// verdictOf returns whether something changes, or worse.
func verdictOf(s *addonsv1.AddonPlanStatus) summary.Verdict {
	switch c := s.Clusters; {
	case c.Refused > 0, s.Removed > 0, s.Removals != nil:
		return summary.Failed
	case c.Same < c.Total:
		return summary.Waiting
	default:
		return summary.Well
	}
}

// worse returns the worse one of two verdicts.
func worse(a, b summary.Verdict) summary.Verdict {
	if a == summary.Failed || b == summary.Failed {
		return summary.Failed
	}
	return max(a, b)
}

// foretell writes the counts of a plan of a stack, as it might be written. Who may make none is told so.
func (c *call) foretell(edited *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(c, 30*time.Minute)
	defer cancel()
	is := edited.DeepCopy()
	if err := c.tryOut(ctx, is); err != nil {
		return err
	}
	template, err := templateOf(is)
	if err != nil {
		return err
	}
	plans, err := plansFor(is, addonsv1.AddonPlanSpec{Template: template})
	for i := 0; err == nil && i < len(plans); i++ {
		if err = c.await(ctx, &plans[i]); err == nil {
			fmt.Fprintln(c.Out, printing.Clean(conditions.GetMessage(&plans[i], addonsv1.CompleteCondition)))
		}
	}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // not to this user, or not with these CRDs
		fmt.Fprintln(c.ErrOut, "There is no plan:", printing.Clean(err.Error()))
		return nil
	}
	return err
}

// recall writes the counts of the newest plan of a revision, if there is one.
func (c *call) recall(stack, revision string) {
	all := &addonsv1.AddonPlanList{}
	if err := c.client.List(c, all, client.InNamespace(c.namespace)); err != nil {
		fmt.Fprintln(c.ErrOut, "Plans can't be read:", printing.Clean(err.Error()))
		return
	}
	p := all.NewestOf(stack, revision)
	if p == nil {
		fmt.Fprintf(c.Out, "There is no plan of %s: kubectl chandler plan %s shows what it does\n", revision, stack)
		return
	}
	fmt.Fprintf(c.Out, "Plan %s of %s: %s\n", p.Name, p.Status.Finished.UTC().Format(time.RFC3339), printing.Clean(conditions.GetMessage(p, addonsv1.CompleteCondition)))
}
