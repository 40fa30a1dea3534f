// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Each source of a stack has its series, as long as the stack is there.
func TestSeriesOfSources(t *testing.T) {
	r, s, _ := bundled(t)
	if _, err := r.Sources.OpenBundle(t.Context(), s.Namespace, s.Spec.Source); err != nil {
		t.Fatal(err)
	}
	s.Spec.Addons = []addonsv1.Addon{
		{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}}, // the bundle's
		{Name: "dns", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:9/dns"}, Version: "1.0.0"}},
		{Name: "new", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:9/new"}, Version: "1.0.0"}},
	}
	dns := reference.AddonOf(s.Namespace, &s.Spec.Addons[1], s.Spec.Source)
	if _, err := r.Sources.Resolve(t.Context(), dns); err == nil {
		t.Error("there is no such host")
	}
	r.Client = objects{stacks: []addonsv1.AddonStack{*s}}
	c := &collector{}
	c.of.Store(r)
	const want = `
# HELP chandler_stack_source_checks_total Number of times that a source of a stack was looked at, by result: Success, or why it failed.
# TYPE chandler_stack_source_checks_total counter
chandler_stack_source_checks_total{addon="dns",namespace="team",result="ArtifactRefused",stack="platform"} 1
chandler_stack_source_checks_total{addon="spec.source",namespace="team",result="Success",stack="platform"} 2
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "chandler_stack_source_checks_total"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{
		"chandler_stack_source_check_duration_seconds":         2,
		"chandler_stack_source_bytes_total":                    2,
		"chandler_stack_source_last_check_timestamp_seconds":   2,
		"chandler_stack_source_last_success_timestamp_seconds": 1,
	} {
		if got := testutil.CollectAndCount(c, name); got != want {
			t.Errorf("%d series of %s, want %d", got, name, want)
		}
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	r.Client = objects{}
	if got := testutil.CollectAndCount(c); got != 0 {
		t.Errorf("%d series of a stack that is gone", got)
	}
}

// However many stacks a namespace has, its series are limited, and those of others are there.
func TestSeriesOfANamespaceAreLimited(t *testing.T) {
	r, s, _ := bundled(t)
	if _, err := r.Sources.OpenBundle(t.Context(), s.Namespace, s.Spec.Source); err != nil {
		t.Fatal(err)
	}
	var stacks []addonsv1.AddonStack
	for i := range 2 * maxSources {
		another := s.DeepCopy()
		another.Name = fmt.Sprint("stack-", i)
		stacks = append(stacks, *another)
	}
	other := s.DeepCopy()
	other.Namespace = "victim"
	if _, err := r.Sources.OpenBundle(t.Context(), other.Namespace, other.Spec.Source); err != nil {
		t.Fatal(err)
	}
	r.Client = objects{stacks: append(stacks, *other)}
	c := &collector{}
	c.of.Store(r)
	if got := testutil.CollectAndCount(c, "chandler_stack_source_bytes_total"); got != maxSources+1 {
		t.Errorf("%d series, want %d and that of another namespace", got, maxSources)
	}
}
