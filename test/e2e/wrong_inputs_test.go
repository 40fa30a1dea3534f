// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// How many inputs at least have an answer that is true and names the object and the field, and how many one that has a way out.
const (
	leastNamed   = 98
	leastWaysOut = 90
)

// wrongInput is something that people do wrong, and what tells them.
type wrongInput struct {
	// name of the input, and of the AddonStack or Cluster that is wrong.
	name string
	// fields of the AddonStack's spec as YAML, see filled; "" if there is no AddonStack of that name.
	fields string
	// told is who tells it.
	told teller
	// reason is stable; "" for the answers of the API server and of commands, which have none.
	reason string
	// names are the parts of the words that name the object and the field, and out those of the way out, with | between parts.
	// One is "" if the words lack it: see unmet.
	names, out string
}

// teller returns the reason and the words that people see of an input.
type teller func(w *wrongInputs, name string) (reason, words string)

// wrongInputs are all of them, in one namespace.
type wrongInputs struct {
	*tenant
	command   *plugin
	prod      *server // of the Cluster prod, on which nothing is wrong
	elsewhere string  // a namespace without Clusters, which the manager works in
	second    *tenant // whose manager wants the same namespace
	replaced  *strings.Replacer
	stacks    map[string]*addonsv1.AddonStack
	clusters  map[string]*addonsv1.ClusterAddon
}

// TestEveryWrongInputIsTold does what people do wrong, all at once. It counts the answers that name the object and the field, and
// those that name a way out.
func TestEveryWrongInputIsTold(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	w := newWrongInputs(t)
	all := allWrongInputs()
	for _, in := range all {
		if before := beforehand[in.name]; before != nil {
			before(w, in.name)
		}
	}
	for _, in := range all {
		if in.fields != "" {
			_, err := w.apply(in.name, w.namespace, in.fields)
			must.Succeed(t, err)
		}
	}
	for name, then := range afterwards {
		w.awaitCluster("prod", name+" is installed", phase(name, addonsv1.AddonReady, "", ""))
		then(w, name)
	}
	var named, waysOut int
	open := all
	poll(t, 3*patience, "each is told", func() error { // there are a hundred, on one machine
		w.read()
		var missing []string
		var left []wrongInput
		for _, in := range open {
			reason, words := in.told(w, in.name)
			if lacks := w.lacks(in, reason, words); lacks != "" {
				left = append(left, in)
				missing = append(missing, fmt.Sprintf("%s: no %s in %s: %s", in.name, lacks, reason, words))
				continue
			}
			t.Logf("%s: %s: %s", in.name, reason, words)
			if in.names != "" {
				named++
			}
			if in.out != "" {
				waysOut++
			}
		}
		if open = left; len(left) > 0 {
			return fmt.Errorf("%d aren't told:\n%s", len(left), strings.Join(missing, "\n"))
		}
		return nil
	})
	fmt.Printf("Of %d wrong inputs, %d are told with object and field, and %d with a way out\n", len(all), named, waysOut)
	if len(all) != 101 || named < leastNamed || waysOut < leastWaysOut {
		t.Errorf("of %d inputs, %d name object and field, want %d; %d have a way out, want %d", len(all), named, leastNamed, waysOut, leastWaysOut)
	}
}

// lacks returns what the answer to an input doesn't have.
func (w *wrongInputs) lacks(in wrongInput, reason, words string) string {
	if (in.names == "" || in.out == "") != (unmet[in.name] != "") {
		return "reason in unmet"
	}
	if in.names == "" {
		return ""
	}
	if words == "" || in.reason != "" && in.reason != reason {
		return "reason " + in.reason
	}
	for _, part := range strings.Split(w.filled(in.name, in.names+"|"+in.out), "|") {
		if !strings.Contains(words, part) {
			return part
		}
	}
	return ""
}

// filled replaces what differs in each run.
func (w *wrongInputs) filled(name, text string) string {
	return w.replaced.Replace(strings.ReplaceAll(text, "NAME", name))
}

// apply applies an AddonStack of these fields as "kubectl apply --server-side" does, and returns the warnings.
func (w *wrongInputs) apply(name, namespace, fields string, dryRun ...string) (string, error) {
	w.t.Helper()
	spec := map[string]any{}
	must.Succeed(w.t, yaml.Unmarshal([]byte("clusterSelector: {matchLabels: {env: prod}}"), &spec))
	own := map[string]any{}
	must.Succeed(w.t, yaml.Unmarshal([]byte("{"+w.filled(name, fields)+"}"), &own))
	setFields(spec, own)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetAPIVersion(addonsv1.GroupVersion.String())
	obj.SetKind("AddonStack")
	obj.SetName(name)
	config := rest.CopyConfig(world.hub.Config())
	heard := &warnings{}
	config.WarningHandlerWithContext = heard
	people, err := dynamic.NewForConfig(config)
	must.Succeed(w.t, err)
	_, err = people.Resource(addonsv1.GroupVersion.WithResource("addonstacks")).Namespace(namespace).
		Apply(w.t.Context(), name, obj, metav1.ApplyOptions{FieldManager: "people", DryRun: dryRun})
	return strings.Join(heard.all, "; "), err
}

type warnings struct{ all []string }

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.all = append(w.all, text)
}

// read reads what the manager has told.
func (w *wrongInputs) read() {
	w.t.Helper()
	w.stacks, w.clusters = map[string]*addonsv1.AddonStack{}, map[string]*addonsv1.ClusterAddon{}
	for _, namespace := range []string{w.namespace, w.elsewhere} {
		stacks, clusters := &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}
		must.Succeed(w.t, world.hub.List(w.t.Context(), stacks, client.InNamespace(namespace)))
		must.Succeed(w.t, world.hub.List(w.t.Context(), clusters, client.InNamespace(namespace)))
		for i := range stacks.Items {
			w.stacks[stacks.Items[i].Name] = &stacks.Items[i]
		}
		for i := range clusters.Items {
			w.clusters[clusters.Items[i].Name] = &clusters.Items[i]
		}
	}
}

// refused is what the API server answers, or warns of.
func refused(fields string) teller {
	return func(w *wrongInputs, name string) (_, words string) {
		warned, err := w.apply(name, w.namespace, fields, metav1.DryRunAll)
		if err != nil {
			return "", err.Error()
		}
		return "", warned
	}
}

// onAddon is what the ClusterAddon of prod says of the stack's first add-on.
func onAddon(w *wrongInputs, name string) (reason, words string) {
	if ca := w.clusters["prod"]; ca != nil {
		for _, a := range ca.Status.Addons {
			if a.Stack == name {
				return a.Reason, a.Message
			}
		}
	}
	return "", ""
}

// onStack is what a condition of the AddonStack says.
func onStack(kind string) teller {
	return func(w *wrongInputs, name string) (reason, words string) { return said(w.stacks[name], kind) }
}

// onCluster is what the ClusterAddon of the input's name says.
func onCluster(w *wrongInputs, name string) (reason, words string) {
	return said(w.clusters[name], addonsv1.ReadyCondition)
}

// onInstance is what the ProviderInstance of the second manager says.
func onInstance(w *wrongInputs, _ string) (reason, words string) {
	all := &addonsv1.ProviderInstanceList{}
	must.Succeed(w.t, world.hub.List(w.t.Context(), all, client.InNamespace(w.second.namespace)))
	for i := range all.Items {
		return said(&all.Items[i], addonsv1.ScopeHeldCondition)
	}
	return "", ""
}

// byCommand is what kubectl chandler says that fails.
func byCommand(line string) teller {
	return func(w *wrongInputs, name string) (_, words string) {
		if out, code := w.command.run(strings.Fields(w.filled(name, line))...); code != 0 {
			return "", out
		}
		return "", ""
	}
}

// warnedAndWaiting is what a warning says, and then the rollout.
func warnedAndWaiting(w *wrongInputs, name string) (reason, words string) {
	_, warned := refused(noSuchWave+smallWith(""))(w, name)
	reason, words = said(w.stacks[name], addonsv1.RolledOutCondition)
	return reason, warned + "; " + words
}

// said is what a condition of an object says, if there are both.
func said[T interface {
	comparable
	conditions.Getter
}](obj T, kind string) (reason, words string) {
	var none T
	if obj != none {
		if c := conditions.Get(obj, kind); c != nil {
			return c.Reason, c.Message
		}
	}
	return "", ""
}
