// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/webhooks"
)

// updateRefusals names the variable that, if it is set, has TestRefusals write the files instead of comparing with them.
// Read each of them then: does it name the field, what is wrong with it, and the way out?
const updateRefusals = "CHANDLER_UPDATE_REFUSALS"

// TestRefusals applies the stacks of testdata/refusals, each wrong in its own way, with kubectl. The API server has the
// CRDs, and calls the webhook with the configuration of config/webhook, but for its address. What kubectl prints is in
// the file beside each stack.
func TestRefusals(t *testing.T) {
	c := admission.Start(t, "..")
	kubectl := kubectlOf(t, c.ControlPlane)
	stacks, err := filepath.Glob("testdata/refusals/*.yaml")
	if err != nil || len(stacks) < 17 {
		t.Fatalf("%d stacks, %v", len(stacks), err)
	}
	for _, input := range stacks {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			printed, err := kubectl("apply", "--server-side", "-f", input)
			if err == nil {
				t.Fatalf("it isn't refused: %s", printed)
			}
			file := strings.TrimSuffix(input, ".yaml") + ".txt"
			if os.Getenv(updateRefusals) != "" {
				must.Succeed(t, os.WriteFile(file, printed, 0o644))
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(printed, want) {
				t.Errorf("kubectl prints\n%s\ninstead of\n%s (%v)", printed, want, err)
			}
		})
	}

	good := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "good"}}
	good.Spec.ClusterSelector = &metav1.LabelSelector{}
	good.Spec.Addons = []addonsv1.Addon{{Name: "a"}, {Name: "b", DependsOn: []string{"a"}}}
	for i := range good.Spec.Addons {
		good.Spec.Addons[i].Chart.Path = "chart"
	}
	if err := c.Create(t.Context(), good); err != nil {
		t.Fatalf("a good stack was refused: %v", err)
	}
	moving := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "moving"}, Spec: *good.Spec.DeepCopy()}
	moving.Spec.Rollout = &addonsv1.Rollout{}
	moving.Spec.Addons = []addonsv1.Addon{{Name: "rules", Manifests: &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{
		Version: "latest", OCI: &addonsv1.OCISource{URL: "oci://example.org/rules"},
	}}}}
	written, err := yaml.Marshal(moving)
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "moving.yaml")
	if err := os.WriteFile(file, append([]byte("apiVersion: addons.cluster.x-k8s.io/v1beta1\nkind: AddonStack\n"), written...), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, err := kubectl("apply", "--server-side", "-f", file); err != nil || !bytes.Contains(printed, []byte("Warning: AddonStack moving: spec.addons[0].manifests.version")) {
		t.Errorf("kubectl prints %s, %v; want a warning", printed, err)
	}
	good.Spec.Addons[0].DependsOn = []string{"b"}
	if err := c.Update(t.Context(), good); err == nil || !strings.Contains(err.Error(), "a -> b -> a") {
		t.Errorf("Update() = %v; want an error that names the cycle", err)
	}
}

// An object from before a rule came stays possible to edit.
// What the API server refuses before it asks is refused without a look: strangers may send it, and to validate it takes seconds.
func TestWhatExceedsTheSchema(t *testing.T) {
	small := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "a"}}}}
	w := &webhooks.AddonStack{}
	for name, addons := range map[string][]addonsv1.Addon{
		"add-ons":      make([]addonsv1.Addon, 65),
		"valuesFrom":   {{Name: "a"}, {Name: "b", ValuesFrom: make([]addonsv1.ValuesReference, 17)}},
		"dependencies": {{Name: "a", DependsOn: make([]string, 64)}},
	} {
		large := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{Addons: addons}}
		_, created := w.ValidateCreate(t.Context(), large)
		_, grown := w.ValidateUpdate(t.Context(), small, large)
		_, shrunk := w.ValidateUpdate(t.Context(), large, small)
		for _, err := range []error{created, grown, shrunk} {
			if !apierrors.IsBadRequest(err) {
				t.Errorf("too many %s: %v", name, err)
			}
		}
	}
}

func TestUpdatesMayKeepOldProblems(t *testing.T) {
	w := &webhooks.AddonStack{}
	before := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"ghost"}}}}}
	after := before.DeepCopy()
	after.Labels = map[string]string{"edited": "yes"}
	if _, err := w.ValidateUpdate(t.Context(), before, after); err != nil {
		t.Errorf("an edit of something else was refused: %v", err)
	}
	after.Spec.Addons = append(after.Spec.Addons, addonsv1.Addon{Name: "b", DependsOn: []string{"phantom"}})
	if _, err := w.ValidateUpdate(t.Context(), before, after); err == nil || strings.Contains(err.Error(), "ghost") {
		t.Errorf("ValidateUpdate() = %v; want the new problem alone", err)
	}
}

// kubectlOf returns a function that runs kubectl, and returns what that prints.
func kubectlOf(t *testing.T, cp *controlplane.ControlPlane) func(args ...string) ([]byte, error) {
	t.Helper()
	dir, err := controlplane.BinDir(t.Context(), os.Stderr, "kubectl")
	must.Succeed(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, cp.Kubeconfig(), 0o600))
	return func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), append([]string{"--kubeconfig=" + kubeconfig}, args...)...).CombinedOutput()
	}
}

// TestWarningsOfSelection has a stack that is admitted though it selects no Cluster, and a process that can't tell.
func TestWarningsOfSelection(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, clusterv1.AddToScheme(scheme))
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod", Labels: map[string]string{"env": "prod"}}}
	knows := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c).Build()
	fails := interceptor.NewClient(knows, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("unknown namespace for the cache")
	}})
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "platform"}}
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prdo"}}
	profiles := s.DeepCopy()
	profiles.Spec.ClusterKinds = []string{addonsv1.KindClusterProfile}
	for name, tc := range map[string]struct {
		clusters client.Reader
		stack    *addonsv1.AddonStack
		want     int
	}{
		"Clusters are read":    {knows, s, 1},
		"they can't be read":   {fails, s, 0},
		"they may not be read": {nil, s, 0},
		"it is of other kinds": {knows, profiles, 0},
		"of another namespace": {knows, &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}, Spec: s.Spec}, 0},
	} {
		w := &webhooks.AddonStack{Clusters: tc.clusters}
		created, err := w.ValidateCreate(t.Context(), tc.stack)
		must.Succeed(t, err)
		updated, err := w.ValidateUpdate(t.Context(), tc.stack, tc.stack)
		must.Succeed(t, err)
		if len(created) != tc.want || len(updated) != tc.want {
			t.Errorf("%s: %q, %q", name, created, updated)
		}
	}
}
