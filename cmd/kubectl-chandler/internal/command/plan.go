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
	appsv1 "k8s.io/api/apps/v1"
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

const (
	// planTimeout is how long a plan may take, unless a flag says another time, and planUntaken how long until an instance begins.
	planTimeout = 30 * time.Minute
	planUntaken = time.Minute
	// planPause is between two looks at a plan.
	planPause = time.Second / 2
)

func (c *call) plan() *cobra.Command {
	file, revision, timeout := "", "", time.Duration(0)
	cmd := c.command("plan STACK", "Show what a change of a stack would do to its clusters, before it does it", cobra.MaximumNArgs(1), func() (err error) {
		if (file == "") != (len(c.args) == 1) || file != "" && revision != "" {
			return errors.New("name a stack, maybe with --revision, or a file with -f")
		}
		ctx, cancel := context.WithTimeout(c, timeout)
		defer cancel()
		p, is := planner{c.client, c.ErrOut}, &unstructured.Unstructured{}
		if file != "" {
			if is, err = stackIn(file, c.In, c.namespace); err == nil {
				err = p.tryOut(ctx, is)
			}
		} else {
			is.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
			err = c.read(is, c.args[0])
		}
		if err != nil {
			return err
		}
		plans, err := p.plan(ctx, is, revision, file != "")
		if err != nil {
			return err
		}
		c.verdict = verdictOf(plans)
		return c.print("Plans", &addonsv1.AddonPlanList{Items: plans}, "Plans", plans)
	})
	cmd.Long = "Show what a change of a stack would do to its clusters, before it does it: of the revision that is rolled out, of another one,\n" +
		"or of the stack in a file, which is what if. A provider instance asks the clusters; nothing is changed.\n" +
		"It exits with 0 if nothing would change, 2 if something would, 1 if something is refused or would be deleted, and 3 if it failed."
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with an AddonStack, as it might be; - for the standard input")
	cmd.Flags().StringVar(&revision, "revision", "", "name of another revision than the one that is rolled out")
	cmd.Flags().DurationVar(&timeout, "timeout", planTimeout, "how long to wait for the plan")
	return cmd
}

// stackIn returns the AddonStack in a file, of a namespace if it names none.
func stackIn(file string, stdin io.Reader, namespace string) (is *unstructured.Unstructured, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if is = (&unstructured.Unstructured{}); err == nil {
		err = yaml.UnmarshalStrict(text, &is.Object)
	}
	if err == nil && is.GroupVersionKind() != addonsv1.GroupVersion.WithKind("AddonStack") {
		err = fmt.Errorf("it has a %s, and not an AddonStack of %s", is.GroupVersionKind(), addonsv1.GroupVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if is.GetNamespace() == "" {
		is.SetNamespace(namespace)
	}
	return is, nil
}

// planner makes plans, and says how far they are.
type planner struct {
	client.Client
	says io.Writer
}

// tryOut writes a stack by a dry run, over the one that is there: its user has to be allowed to.
func (p planner) tryOut(ctx context.Context, is *unstructured.Unstructured) error {
	known := &unstructured.Unstructured{}
	known.SetGroupVersionKind(is.GroupVersionKind())
	err := p.Get(ctx, client.ObjectKeyFromObject(is), known)
	switch {
	case apierrors.IsNotFound(err):
		err = p.Create(ctx, is, client.DryRunAll)
	case err == nil:
		known.Object["spec"] = is.Object["spec"]
		*is = *known
		err = p.Update(ctx, is, client.DryRunAll)
	}
	if err != nil {
		return fmt.Errorf("AddonStack %s: %w", is.GetName(), err)
	}
	return nil
}

// plan has a revision of a stack planned, or its spec as a template. If several instances manage it, there is a plan of each one.
func (p planner) plan(ctx context.Context, is *unstructured.Unstructured, revision string, isTemplate bool) (plans []addonsv1.AddonPlan, _ error) {
	spec := addonsv1.AddonPlanSpec{StackName: is.GetName(), Revision: revision}
	if isTemplate {
		text, _ := json.Marshal(is.Object["spec"]) // it was read from JSON
		spec.Template = &apiextensionsv1.JSON{Raw: text}
	}
	filters := []string{is.GetLabels()[clusterv1.WatchLabel]}
	if filters[0] == addonsv1.SharedWatchFilter {
		filters = nil
		instances, _, _ := unstructured.NestedSlice(is.Object, "status", "instances")
		for _, each := range instances {
			filter, _, _ := unstructured.NestedString(each.(map[string]any), "watchFilter")
			filters = append(filters, filter)
		}
	}
	for _, filter := range filters {
		one := addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: is.GetNamespace(), GenerateName: is.GetName() + "-"}, Spec: spec}
		if filter != "" {
			one.Labels = map[string]string{clusterv1.WatchLabel: filter}
		}
		if err := p.await(ctx, &one); err != nil {
			return nil, err
		}
		plans = append(plans, one)
	}
	return plans, nil
}

// await makes a plan, waits for its end, and deletes it. A plan that failed is an error.
func (p planner) await(ctx context.Context, is *addonsv1.AddonPlan) error {
	is.Spec.TTLSecondsAfterFinished = new(int32(3600)) // if nobody deletes it
	if err := p.Create(ctx, is); err != nil {
		return fmt.Errorf("making a plan: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := p.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
			fmt.Fprintf(p.says, "AddonPlan %s is left: %s\n", is.Name, printing.Clean(err.Error()))
		}
	}()
	for said, begun := "", time.Now(); !is.IsFinished(); {
		select {
		case <-ctx.Done():
			return unfinished(is, context.Cause(ctx))
		case <-time.After(planPause):
		}
		if err := p.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil && ctx.Err() == nil {
			return fmt.Errorf("reading the plan: %w", err)
		}
		if is.Status.Phase == "" && time.Since(begun) > planUntaken {
			return unfinished(is, nil)
		}
		if now := progressOf(is); now != said {
			said = now
			fmt.Fprintln(p.says, printing.Clean(said))
		}
	}
	if is.Status.Phase == addonsv1.PlanFailed {
		return fmt.Errorf("AddonStack %s: %s: %s", is.Spec.StackName, conditions.GetReason(is, addonsv1.CompleteCondition), answerOf(is))
	}
	return nil
}

// unfinished says why a plan has no answer.
func unfinished(is *addonsv1.AddonPlan, cause error) error {
	if is.Status.Phase == "" {
		return fmt.Errorf("no provider instance took AddonPlan %s up. See that one runs, whose --namespace, if it has any, names %s, and whose --watch-filter is %q",
			is.Name, is.Namespace, is.Labels[clusterv1.WatchLabel])
	}
	return fmt.Errorf("AddonPlan %s isn't finished, %s: %w", is.Name, progressOf(is), cause)
}

// answerOf returns the counts of a plan, or why it has none.
func answerOf(p *addonsv1.AddonPlan) string {
	return conditions.GetMessage(p, addonsv1.CompleteCondition)
}

// progressOf returns how far a plan is.
func progressOf(p *addonsv1.AddonPlan) string {
	if p.Status.Phase != addonsv1.PlanRunning {
		return answerOf(p)
	}
	c := p.Status.Clusters
	return fmt.Sprintf("asked %d of %s", c.Same+c.Changed+c.Held+c.Refused+c.NotChecked+c.Unreachable, printing.Number(c.Total, "cluster"))
}

// verdictOf returns whether something changes by one of the plans, or worse.
func verdictOf(plans []addonsv1.AddonPlan) (is summary.Verdict) {
	for i := range plans {
		s := &plans[i].Status
		switch c := s.Clusters; {
		case c.Refused > 0, s.Removed > 0, s.Removals != nil:
			return summary.Failed
		case c.Same < c.Total:
			is = summary.Waiting
		}
	}
	return is
}

// foretell writes the counts of a plan of a stack as it might be written. Who may make none is told so.
func (p planner) foretell(ctx context.Context, edited *unstructured.Unstructured, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	is := edited.DeepCopy()
	if err := p.tryOut(ctx, is); err != nil {
		return err
	}
	plans, err := p.plan(ctx, is, "", true)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // not to this user, or not with these CRDs
		fmt.Fprintln(p.says, "There is no plan:", printing.Clean(err.Error()))
		return nil
	}
	for i := range plans {
		fmt.Fprintln(to, printing.Clean(answerOf(&plans[i])))
	}
	return err
}

// recalled returns the counts of the newest plan of a revision.
func recalled(ctx context.Context, c client.Client, revision *appsv1.ControllerRevision) string {
	all, of := &addonsv1.AddonPlanList{}, revision.Labels[addonsv1.StackNameLabel]
	err := c.List(ctx, all, client.InNamespace(revision.Namespace))
	if p := all.NewestOf(of, revision.Name); p != nil {
		return fmt.Sprintf("Plan %s of %s: %s", p.Name, p.Status.Finished.UTC().Format(time.RFC3339), answerOf(p))
	}
	if err != nil {
		return "Plans can't be read: " + err.Error()
	}
	return fmt.Sprintf("There is no plan of %s: kubectl chandler plan %s shows what it does", revision.Name, of)
}
