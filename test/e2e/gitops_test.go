// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// health is how GitOps tools evaluate a stack.
type health struct{ kstatus, flux, argo string }

// TestGitOps brings stacks into all states of docs/gitops.md, and compares the verdicts of kstatus, and of the page's
// checks for Flux and Argo CD, with its table.
func TestGitOps(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	page, err := docs.Read(filepath.Join("..", ".."), "docs/gitops.md")
	tn.Expect(err).NotTo(HaveOccurred())
	evaluate := evaluateOf(t, page)

	settings := tn.writeChart("settings", "1.0.0", configMapChart)
	stuck := tn.writeChart("stuck", "1.0.0", chart{"templates/hook.yaml": hookJob("pre-install", controlplane.PodFate+": "+controlplane.PodStuck)})
	broken := tn.writeChart("broken", "1.0.0", chart{"templates/text.yaml": "{{ fail \"no\" }}"})
	tn.makeCluster("up", workloadServer(t, 0), labels("up=yes"))
	tn.makeCluster("two", workloadServer(t, 1), labels("two=yes"))
	tn.makeCluster("three", workloadServer(t, 2), labels("two=yes"))
	tn.makeClusterObject("down", labels("down=yes"))
	up := labels("up=yes")
	tn.makeStack("new", up, tn.addon("new", settings))
	seen := map[string]health{"new": evaluate(tn.read("AddonStack", "new"))}

	tn.startManager()
	tn.makeStack("edited", up, tn.addon("edited", settings))
	tn.makeStack("installing", up, tn.addon("installing", stuck))
	tn.makeStack("secret-missing", up, tn.addon("secret-missing", settings, valuesFromSecrets("none")))
	from := tn.newStack("source-missing", up, tn.addon("source-missing", "settings"))
	from.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "none"}}}
	tn.create(from)
	tn.makeStack("source-down", up, tn.addon("source-down", "", fromOCI("oci://127.0.0.1:1/charts/none", "1.0.0", plainHTTP)))
	tn.makeStack("cluster-down", labels("down=yes"), tn.addon("cluster-down", settings))
	held := tn.newStack("removal-held", labels("two=yes"), tn.addon("held", settings), tn.addon("stays", settings))
	limit := intstr.FromInt32(1)
	held.Spec.RemovalLimit = &limit
	tn.create(held)
	tn.makeStack("ready", up, tn.addon("ready", settings))
	tn.makeStack("no-cluster", labels("none=yes"), tn.addon("none", settings))
	tn.makeStack("paused", up, tn.addon("paused", settings))
	tn.makeStack("failed", up, tn.addon("failed", broken))
	tn.makeStack("invalid", up, tn.addon("invalid", settings))
	for _, name := range []string{"soaking", "halted"} {
		rolls := tn.newStack(name, labels("two=yes"), tn.addon(name, settings))
		rolls.Spec.Rollout = &addonsv1.Rollout{MinReady: &metav1.Duration{}, Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1), Soak: &metav1.Duration{Duration: time.Hour}}}}
		tn.create(rolls)
	}
	for _, name := range []string{"edited", "removal-held", "ready", "paused", "invalid"} {
		tn.awaitReady(name, "all is well at first")
	}
	tn.awaitStack("halted", "a first rollout ends at its canary", addonsv1.RolledOutCondition, metav1.ConditionFalse, string(addonsv1.RolloutSoaking), "")
	tn.awaitStack("soaking", "so does the other", addonsv1.RolledOutCondition, metav1.ConditionFalse, string(addonsv1.RolloutSoaking), "")
	tn.changeStack("halted", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Chart.Path = broken })
	tn.pauseStack("paused")
	tn.changeStack("invalid", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].DependsOn = []string{"nobody"} })
	tn.changeStack("removal-held", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[1:] })
	for name, is := range map[string]struct {
		status metav1.ConditionStatus
		reason string
	}{
		"installing":     {metav1.ConditionFalse, addonsv1.ClustersProgressingReason},
		"secret-missing": {metav1.ConditionFalse, addonsv1.ClustersProgressingReason},
		"source-missing": {metav1.ConditionUnknown, "ArtifactNotFound"},
		"source-down":    {metav1.ConditionFalse, addonsv1.ClustersProgressingReason},
		"cluster-down":   {metav1.ConditionFalse, addonsv1.ClustersProgressingReason},
		"removal-held":   {metav1.ConditionFalse, addonsv1.RemovalHeldReason},
		"ready":          {metav1.ConditionTrue, addonsv1.ReadyReason},
		"no-cluster":     {metav1.ConditionTrue, addonsv1.ReadyReason},
		"paused":         {metav1.ConditionTrue, addonsv1.PausedReason},
		"soaking":        {metav1.ConditionTrue, addonsv1.ReadyReason},
		"halted":         {metav1.ConditionFalse, string(addonsv1.RolloutHalted)},
		"failed":         {metav1.ConditionFalse, addonsv1.ClustersFailedReason},
		"invalid":        {metav1.ConditionFalse, addonsv1.UnknownDependencyReason},
	} {
		tn.awaitStack(name, "it comes into its state", addonsv1.ReadyCondition, is.status, is.reason, "")
		seen[name] = evaluate(tn.read("AddonStack", name))
	}
	tn.stopManager()
	tn.changeStack("edited", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Chart.Path = stuck })
	seen["edited"] = evaluate(tn.read("AddonStack", "edited"))

	want := map[string]health{}
	for _, row := range page.Rows("state") {
		want[row.Code(0)[0]] = health{row.Text(1), row.Text(1), row.Text(2)}
	}
	tn.Expect(want).To(HaveLen(15))
	tn.Expect(seen).To(Equal(want))
}

// evaluateOf returns how kstatus, and the page's checks for Flux and Argo CD, evaluate a stack.
func evaluateOf(t *testing.T, page docs.Page) func(*unstructured.Unstructured) health {
	t.Helper()
	g := NewWithT(t)
	blocks, err := page.Blocks("yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blocks).To(HaveLen(1))
	flux := struct {
		HealthCheckExprs []struct{ Current, Failed string }
	}{}
	g.Expect(yaml.Unmarshal([]byte(blocks[0].Text), &flux)).To(Succeed())
	env, err := cel.NewEnv(cel.Variable("status", cel.DynType), cel.Variable("metadata", cel.DynType))
	g.Expect(err).NotTo(HaveOccurred())
	holds := func(expression string, o *unstructured.Unstructured) bool {
		ast, issues := env.Compile(expression)
		g.Expect(issues.Err()).NotTo(HaveOccurred())
		program, err := env.Program(ast)
		g.Expect(err).NotTo(HaveOccurred())
		value, _, err := program.Eval(map[string]any{"status": o.Object["status"], "metadata": o.Object["metadata"]})
		g.Expect(err).NotTo(HaveOccurred())
		return value.Value() == true
	}
	scripts, err := page.Blocks("lua")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scripts).To(HaveLen(1))
	return func(o *unstructured.Unstructured) health {
		result, err := status.Compute(o)
		g.Expect(err).NotTo(HaveOccurred())
		is := health{kstatus: result.Status.String(), flux: "InProgress"}
		switch checks := flux.HealthCheckExprs[0]; {
		case holds(checks.Failed, o):
			is.flux = "Failed"
		case holds(checks.Current, o):
			is.flux = "Current"
		}
		state := lua.NewState()
		defer state.Close()
		state.SetGlobal("obj", luaOf(t, state, o))
		g.Expect(state.DoString(scripts[0].Text)).To(Succeed())
		is.argo = state.GetField(state.Get(-1), "status").String()
		return is
	}
}

// luaOf returns an object as a table.
func luaOf(t *testing.T, state *lua.LState, o *unstructured.Unstructured) lua.LValue {
	t.Helper()
	data, err := json.Marshal(o.Object)
	must.Succeed(t, err)
	var plain any
	must.Succeed(t, json.Unmarshal(data, &plain))
	var convert func(any) lua.LValue
	convert = func(value any) lua.LValue {
		switch v := value.(type) {
		case nil:
			return lua.LNil
		case bool:
			return lua.LBool(v)
		case float64:
			return lua.LNumber(v)
		case string:
			return lua.LString(v)
		case []any:
			list := state.NewTable()
			for _, each := range v {
				list.Append(convert(each))
			}
			return list
		case map[string]any:
			fields := state.NewTable()
			for key, each := range v {
				fields.RawSetString(key, convert(each))
			}
			return fields
		}
		panic(fmt.Sprintf("%T isn't JSON", value))
	}
	return convert(plain)
}
