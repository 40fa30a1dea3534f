package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/process"
)

func TestZZFieldValidation(t *testing.T) {
	w := startWriter(t, "/work/main/config/crd/bases")
	g := NewWithT(t)
	rules := []any{}
	for i := range 20 {
		rules = append(rules, map[string]any{"apiGroups": []any{"", "apps"}, "resources": []any{fmt.Sprint("r", i), "pods", "services"}, "verbs": []any{"get", "list", "watch"}})
	}
	make := func(kind string, round int) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		switch kind {
		case "ConfigMap":
			o.SetAPIVersion("v1")
			o.Object["data"] = map[string]any{"a": strings.Repeat("x: y\n", 200), "b": fmt.Sprint(round)}
			o.SetNamespace(namespace)
		case "ClusterRole":
			o.SetAPIVersion("rbac.authorization.k8s.io/v1")
			o.Object["rules"] = rules
			o.SetLabels(map[string]string{"a": fmt.Sprint(round)})
		}
		o.SetKind(kind)
		o.SetName("fv")
		return o
	}
	for _, kind := range []string{"ConfigMap", "ClusterRole"} {
		sums := map[string]time.Duration{}
		for round := range 8 {
			for _, v := range []string{"", "Ignore"} {
				begin, err := process.CPU(w.pid)
				g.Expect(err).NotTo(HaveOccurred())
				for i := range 200 {
					o := make(kind, round*1000+i)
					data, _ := o.MarshalJSON()
					opts := []client.PatchOption{client.FieldOwner("x"), client.ForceOwnership}
					if v != "" {
						opts = append(opts, client.FieldValidation(v))
					}
					g.Expect(w.Patch(t.Context(), o, client.RawPatch(types.ApplyPatchType, data), opts...)).To(Succeed())
				}
				end, err := process.CPU(w.pid)
				g.Expect(err).NotTo(HaveOccurred())
				sums[v] += end - begin
			}
		}
		t.Logf("%s: warn %.2f ms, ignore %.2f ms", kind, sums[""].Seconds()*1000/1600, sums["Ignore"].Seconds()*1000/1600)
	}
}
