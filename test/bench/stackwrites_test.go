// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/process"
)

// crdsEnv names a folder of other CRDs. Without it, nothing is compared.
const crdsEnv = "CHANDLER_BENCH_CRDS"

// manyAddons is how many add-ons a large stack has.
const manyAddons = 30

// TestStackWrites compares the processor time of API servers that take writes of a large AddonStack, one of them with other CRDs.
func TestStackWrites(t *testing.T) {
	if os.Getenv(crdsEnv) == "" {
		t.Skip(crdsEnv + " says with which CRDs those of this checkout are to be compared")
	}
	these, others := startWriter(t, filepath.Join(world.root, "config/crd/bases")), startWriter(t, os.Getenv(crdsEnv))
	for _, write := range []struct {
		name string
		do   func(w *writer, ctx context.Context, i int) error
	}{
		{"creation (dry run)", func(w *writer, ctx context.Context, _ int) error {
			return w.Create(ctx, largeStack("dry"), client.DryRunAll)
		}},
		{"a label", func(w *writer, ctx context.Context, i int) error {
			return w.Patch(ctx, largeStack("kept"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"a":"b%d"}}}`, i)))
		}},
		{"a value", func(w *writer, ctx context.Context, i int) error {
			s := largeStack("kept")
			s.Spec.Addons[7].Values.Raw = fmt.Appendf(nil, `{"replicas": %d}`, i)
			return w.Patch(ctx, s, client.Apply, client.FieldOwner("bench"), client.ForceOwnership) //nolint:staticcheck // the object has no apply configuration
		}},
		{"the status", func(w *writer, ctx context.Context, i int) error {
			return w.Status().Patch(ctx, largeStack("kept"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"clusters":{"total":%d,"ready":1,"failed":0,"waiting":0}}}`, i)))
		}},
	} {
		var now, before time.Duration
		for i := range 6 { // of each by turns, as the machine has other work
			now += these.measure(t, i, write.do)
			before += others.measure(t, i, write.do)
		}
		t.Logf("%-20s %.1f ms of CPU, with the other CRDs %.1f ms: %.2f", write.name, ms(now), ms(before), now.Seconds()/before.Seconds())
	}
}

// ms is the time of one write in milliseconds, of six measured.
func ms(sum time.Duration) float64 { return sum.Seconds() * 1e3 / 6 }

// writer is an API server.
type writer struct {
	*apiserver.Server
	pid int
}

func startWriter(t *testing.T, crds string) *writer {
	g := NewWithT(t)
	var known []int
	running, err := process.List()
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range running {
		known = append(known, p.PID)
	}
	w := &writer{Server: apiserver.Own(t, controlplane.Options{Name: "writes", CRDPaths: []string{crds}})}
	running, err = process.List()
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range running {
		if p.Name == "kube-apiserver" && p.Parent == os.Getpid() && !slices.Contains(known, p.PID) {
			w.pid = p.PID
		}
	}
	g.Expect(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	g.Expect(w.Create(t.Context(), largeStack("kept"))).To(Succeed())
	return w
}

// measure returns the processor time that the API server takes for one write, on average of twenty.
func (w *writer) measure(t *testing.T, round int, write func(*writer, context.Context, int) error) time.Duration {
	t.Helper()
	g := NewWithT(t)
	const times = 20
	g.Expect(write(w, t.Context(), round*1000)).To(Succeed())
	begin, err := process.CPU(w.pid)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range times {
		g.Expect(write(w, t.Context(), round*1000+i+1)).To(Succeed())
	}
	end, err := process.CPU(w.pid)
	g.Expect(err).NotTo(HaveOccurred())
	return (end - begin) / times
}

func largeStack(name string) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.APIVersion, s.Kind = addonsv1.GroupVersion.String(), "AddonStack"
	s.Namespace, s.Name = namespace, name
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	for i := range manyAddons {
		s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{
			Name: fmt.Sprintf("a%02d", i), Namespace: "tiny",
			Chart:          addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/charts/a"}, Version: "1.2.3"},
			ValuesTemplate: "cluster: '{{ .Cluster.metadata.name }}'\n" + strings.Repeat("# some words\n", 20),
			Values:         &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 2, "resources": {"limits": {"cpu": "1"}}}`)},
		})
	}
	return s
}
