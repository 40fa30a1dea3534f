// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// revised is a stack with its revisions, the newest first.
type revised struct {
	*addonsv1.AddonStack
	served    *unstructured.Unstructured // with fields that this program doesn't know
	revisions []appsv1.ControllerRevision
}

// stack reads the stack that the first argument names, with its revisions.
func (c *call) stack() (*revised, error) {
	is := &revised{AddonStack: &addonsv1.AddonStack{}, served: &unstructured.Unstructured{}}
	is.served.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	err := c.client.Get(c, client.ObjectKey{Namespace: c.namespace, Name: c.args[0]}, is.served)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(is.served.Object, is.AddonStack)
	}
	if err != nil {
		return nil, fmt.Errorf("reading AddonStack %s: %w", c.args[0], err)
	}
	is.revisions, err = observed.Revisions(c, c.client, is.AddonStack)
	return is, err
}

func (c *call) history() *cobra.Command {
	since := time.Duration(0)
	cmd := onRead(c, "history [NAME | stack/NAME | cluster/NAME]", "Show what changed, when, why and by whom: everywhere, of a stack with its revisions, or on a cluster",
		cobra.MaximumNArgs(1), c.fleet, func(f *observed.Fleet) error {
			var begin time.Time
			if since > 0 {
				begin = f.At.Add(-since)
			}
			if len(c.args) == 0 {
				changes := summary.ChangesOf(f, begin)
				return c.print("Changes", changes, "ChangesMade", changes)
			}
			is, err := find(f, c.args[0], kindStack, kindCluster)
			if stack, other := find(f, c.args[0], kindStack); other == nil {
				is, err = stack, nil
			}
			switch {
			case err != nil:
				return err
			case is.kind == kindCluster:
				changes := summary.ChangesOf(&observed.Fleet{Clusters: f.Clusters[is.at : is.at+1]}, begin)
				return c.print("Changes", changes, "ChangesMade", changes)
			}
			revisions, err := observed.Revisions(c, c.client, &f.Stacks[is.at])
			if err != nil {
				return err
			}
			history, err := summary.HistoryOf(&f.Stacks[is.at], revisions, f.Clusters)
			if err != nil {
				return err
			}
			return c.print("History", history, "History", history)
		})
	cmd.Long = "Show what changed, when, why and by whom, as far as the statuses tell: they have the last ten changes of each stack, and of each\n" +
		"cluster. The same change on several clusters is shown once. Of a stack, its revisions are shown: what differs, and which clusters have them."
	cmd.Flags().DurationVar(&since, "since", 0, "show changes of this time alone, as 12h; by default all that are known")
	return c.inAllNamespaces(cmd)
}

// named returns the revision of a name or number, nil if there is none.
func (is *revised) named(name string) *appsv1.ControllerRevision {
	at := slices.IndexFunc(is.revisions, func(r appsv1.ControllerRevision) bool {
		return r.Name == name || strconv.FormatInt(r.Revision, 10) == name
	})
	if at < 0 {
		return nil
	}
	return &is.revisions[at]
}

// before returns the revision that an undo goes back to, nil if there is none. It is the one that was completed before the
// present one, or else the newest one before that. It isn't rejected. The present one is what the spec is, or the one under way
// that this waits for. A spec that isn't kept as a revision comes after all of them.
func (is *revised) before(current *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	marked, present := rollout.Revisions(is.revisions), -1
	if current.Name != "" {
		if present = 0; is.Spec.Rollout != nil && !isRejected(current) {
			present = rollout.Target(marked)
		}
	}
	if previous := rollout.Previous(marked, present); previous >= 0 {
		return &is.revisions[previous]
	}
	for i := range is.revisions[present+1:] {
		if r := &is.revisions[present+1+i]; !isRejected(r) {
			return r
		}
	}
	return nil
}

func (c *call) undo() *cobra.Command {
	to, addon, dryRun := "", "", false
	cmd := onRead(c, "undo STACK", "Bring a stack, or one of its add-ons, back to a previous revision", cobra.ExactArgs(1), c.stack, func(is *revised) error {
		current, err := stack.Written(is.served, is.AddonStack, is.revisions)
		if err != nil {
			return err
		}
		target := is.before(current)
		if to != "" {
			target = is.named(to)
		}
		switch {
		case target == nil && to == "":
			return fmt.Errorf("AddonStack %s has no earlier revision; kubectl chandler history names those that are kept", is.Name)
		case target == nil:
			return fmt.Errorf("AddonStack %s has no such revision; kubectl chandler history names those that are kept", is.Name)
		}
		spec, after, err := is.undone(current, target, addon)
		if err != nil {
			return fmt.Errorf("AddonStack %s: %w", is.Name, err)
		}
		changes, err := stack.Differences(current, after)
		switch {
		case err != nil:
			return err
		case addon != "" && len(changes) == 0:
			return fmt.Errorf("AddonStack %s: revision %d, %s, has the same add-on %s: name another one with --to-revision", is.Name, target.Revision, target.Name, addon)
		}
		is.served.Object["spec"] = spec // with its resourceVersion: a write in between is a conflict
		if err := c.write("Changes", changes); err != nil {
			return err
		}
		if dryRun {
			return planner{c.client, c.ErrOut}.foretell(c, is.served, c.Out)
		}
		if err := c.client.Update(c, is.served); err != nil {
			return fmt.Errorf("writing AddonStack %s: %w", is.Name, err)
		}
		fmt.Fprintf(c.Out, "%s: back to revision %d, %s\n", cmp.Or(addon, is.Name), target.Revision, target.Name)
		return nil
	})
	cmd.Long = "Write the spec of a previous revision into the stack. Its rollout, updates, deletionPolicy and removalLimit stay as they are,\n" +
		"and allowedRemovals is taken out.\n" +
		"A revision has exact versions: where the stack had a range, it has the version that was taken then."
	cmd.Flags().StringVar(&to, "to-revision", "", "number or name of the revision; by default the one that was completed before, or else the newest one before that wasn't rejected")
	cmd.Flags().StringVar(&addon, "addon", "", "name of the add-on to bring back; all else stays")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change, and how many clusters that changes, restarts or refuses")
	return cmd
}

// undone returns the spec of a stack with what is brought back: an add-on, or all for "". What no revision has stays, but for
// allowedRemovals: it is about another edit, and may name add-ons that come back. It also returns what the current revision becomes.
func (is *revised) undone(current, target *appsv1.ControllerRevision, addon string) (map[string]any, *appsv1.ControllerRevision, error) {
	var spec, now map[string]any
	if err := errors.Join(json.Unmarshal(target.Data.Raw, &spec), json.Unmarshal(current.Data.Raw, &now)); err != nil {
		return nil, nil, fmt.Errorf("reading revisions: %w", err)
	}
	written := is.served.Object["spec"].(map[string]any)
	if addon == "" {
		for _, field := range append([]string{"rollout", "updates"}, stack.Policies...) {
			delete(spec, field) // an earlier program may have kept it
			if value, found := written[field]; found && field != "allowedRemovals" {
				spec[field] = value
			}
		}
		return spec, target, nil
	}
	if !putAddon(addon, spec, written) || !putAddon(addon, spec, now) {
		return nil, nil, fmt.Errorf("add-on %s isn't in spec.addons, or wasn't in that of %s", addon, target.Name)
	}
	data, err := json.Marshal(now)
	return written, &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}, err
}

// putAddon puts the add-on of one spec in the place of that in another one. It returns false if one of them has none.
func putAddon(name string, from, into map[string]any) bool {
	has := func(is any) bool { a, _ := is.(map[string]any); return a["name"] == name }
	was, _ := from["addons"].([]any)
	is, _ := into["addons"].([]any)
	before, at := slices.IndexFunc(was, has), slices.IndexFunc(is, has)
	if before < 0 || at < 0 {
		return false
	}
	is[at] = was[before]
	return true
}
