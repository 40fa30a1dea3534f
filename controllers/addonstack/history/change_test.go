// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/history"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// has returns a revision of add-ons with versions, as "web 1.0.0".
func has(t *testing.T, name string, created time.Time, cause rollout.Cause, addons ...string) appsv1.ControllerRevision {
	t.Helper()
	var spec addonsv1.AddonStackSpec
	for _, addon := range addons {
		of, version, _ := strings.Cut(addon, " ")
		spec.Addons = append(spec.Addons, addonsv1.Addon{Name: of, Chart: addonsv1.ChartSource{Version: version, OCI: &addonsv1.OCISource{URL: "oci://example.org/" + of}}})
	}
	is := stacks.Revision(t, name, spec)
	is.CreationTimestamp = metav1.NewTime(created)
	rollout.Begin(&is, cause, true)
	return is
}

// TestChangeOfAStack tells from the revisions what made the newest one so, and which versions it changed.
func TestChangeOfAStack(t *testing.T) {
	old := has(t, "old", now, rollout.Edited, "dns 1.0.0", "web 1.0.0")
	for name, tc := range map[string]struct {
		is       appsv1.ControllerRevision
		from     string
		cause    addonsv1.ChangeCause
		versions string
	}{
		"the first one":    {has(t, "new", now, rollout.Edited, "web 1.0.0"), "", addonsv1.ChangeEdited, "web none -> 1.0.0"},
		"edited":           {has(t, "new", now.Add(time.Hour), rollout.Edited, "dns 1.0.0", "web 1.1.0"), "old", addonsv1.ChangeEdited, "web 1.0.0 -> 1.1.0"},
		"no versions":      {has(t, "new", now.Add(time.Hour), rollout.Edited, "web 1.0.0", "dns 1.0.0"), "old", addonsv1.ChangeEdited, ""},
		"other add-ons":    {has(t, "new", now.Add(time.Hour), rollout.Edited, "web 1.0.0", "top 2"), "old", addonsv1.ChangeEdited, "dns 1.0.0 -> none, top none -> 2"},
		"followed":         {has(t, "new", now.Add(time.Hour), rollout.Followed, "dns 1.0.0", "web 1.1.0"), "old", addonsv1.ChangeFollowed, "web 1.0.0 -> 1.1.0"},
		"values":           {has(t, "new", now.Add(time.Hour), rollout.Followed, "dns 1.0.0", "web 1.0.0"), "old", addonsv1.ChangeValues, ""},
		"a step back":      {has(t, "new", now.Add(time.Hour), rollout.Back, "dns 1.0.0", "web 0.9.0"), "old", addonsv1.ChangeBack, "web 1.0.0 -> 0.9.0"},
		"an earlier one":   {has(t, "new", now.Add(-time.Hour), rollout.Edited, "dns 1.0.0", "web 0.9.0"), "old", addonsv1.ChangeBack, "web 1.0.0 -> 0.9.0"},
		"of one that left": {has(t, "new", now, rollout.Edited, "web 1.0.0"), "gone", addonsv1.ChangeEdited, "web none -> 1.0.0"},
	} {
		got := history.ChangeTo([]appsv1.ControllerRevision{tc.is, old}, tc.from, now)
		if got.Cause != tc.cause || got.Versions != tc.versions || got.From != tc.from || got.To != "new" || !got.Time.Equal(&metav1.Time{Time: now}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	var many []string
	for _, name := range []string{"a", "b", "c", "d"} {
		many = append(many, name+" "+strings.Repeat("1", 300))
	}
	if got := history.ChangeTo([]appsv1.ControllerRevision{has(t, "new", now, rollout.Edited, many...)}, "", now); len(got.Versions) > 512 {
		t.Errorf("%d bytes of versions", len(got.Versions))
	}
}

// TestKeepNotesTheChange has a stack's history in step with its newest revision, also if the last write was lost, and at ten changes.
func TestKeepNotesTheChange(t *testing.T) {
	full := make([]addonsv1.StackChange, addonsv1.MaxHistory)
	for name, tc := range map[string]struct {
		latest  string // that the status names; "is" is the kept one
		history []addonsv1.StackChange
		want    int
		noted   bool
	}{
		"the status has seen it":    {latest: "is"},
		"its write was lost":        {latest: "before", want: 1, noted: true},
		"the status was lost":       {want: 1, noted: true},
		"another instance noted it": {latest: "before", history: []addonsv1.StackChange{{To: "is"}}, want: 1, noted: true},
		"there are ten":             {latest: "before", history: full, want: addonsv1.MaxHistory, noted: true},
	} {
		h, s, revision := keeping(t)
		if s.Status.LatestRevision = tc.latest; tc.latest == "is" {
			s.Status.LatestRevision = revision.Name
		}
		for _, c := range tc.history {
			if c.To == "is" {
				c.To = revision.Name
			}
			s.Status.History = append(s.Status.History, c)
		}
		_, err := h.Keep(t.Context(), s, s, nil, []appsv1.ControllerRevision{*revision})
		must.Succeed(t, err)
		if got := s.Status.History; len(got) != tc.want || tc.noted && got[0].To != revision.Name {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestEditorOf names who wrote the spec last, not who wrote its status or its labels since.
func TestEditorOf(t *testing.T) {
	wrote := func(manager string, at int, fields, subresource string) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(now.Add(time.Duration(at) * time.Second))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
	}
	spec := `{"f:spec":{"f:addons":{}}}`
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		marks  map[string]string // labels and annotations
		want   string
	}{
		"not known":   {},
		"a person":    {fields: []metav1.ManagedFieldsEntry{wrote("kubectl-edit", 1, spec, "")}, want: "kubectl-edit"},
		"the last":    {fields: []metav1.ManagedFieldsEntry{wrote("kubectl-edit", 2, spec, ""), wrote("helm", 1, spec, "")}, want: "kubectl-edit"},
		"of the spec": {fields: []metav1.ManagedFieldsEntry{wrote("kubectl-edit", 1, spec, ""), wrote("manager", 2, spec, "status"), wrote("x", 3, `{"f:metadata":{}}`, "")}, want: "kubectl-edit"},
		"no fields":   {fields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		"Flux": {
			fields: []metav1.ManagedFieldsEntry{wrote("kustomize-controller", 1, spec, "")},
			marks:  map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			want:   "kustomize-controller (Kustomization flux-system/apps)",
		},
		"a release of Flux": {
			fields: []metav1.ManagedFieldsEntry{wrote("helm-controller", 1, spec, "")},
			marks:  map[string]string{"helm.toolkit.fluxcd.io/name": "apps", "helm.toolkit.fluxcd.io/namespace": "flux-system"},
			want:   "helm-controller (HelmRelease flux-system/apps)",
		},
		"Argo CD": {
			fields: []metav1.ManagedFieldsEntry{wrote("argocd-controller", 1, spec, "")},
			marks:  map[string]string{"argocd.argoproj.io/tracking-id": "apps:addons.cluster.x-k8s.io/AddonStack:default/platform"},
			want:   "argocd-controller (Application apps)",
		},
		"a person, in spite of Flux": {
			fields: []metav1.ManagedFieldsEntry{wrote("kustomize-controller", 1, spec, ""), wrote("kubectl-edit", 2, spec, "")},
			marks:  map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: "kubectl-edit",
		},
		"Flux without a label": {fields: []metav1.ManagedFieldsEntry{wrote("kustomize-controller", 1, spec, "")}, want: "kustomize-controller"},
	} {
		o := &metav1.ObjectMeta{ManagedFields: tc.fields, Labels: tc.marks, Annotations: tc.marks}
		if got := history.EditorOf(o); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	long := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{wrote("argocd-controller", 1, spec, "")}, Annotations: map[string]string{"argocd.argoproj.io/tracking-id": strings.Repeat("a", 999)}}
	if got := history.EditorOf(long); len(got) > 256 {
		t.Errorf("%d bytes", len(got))
	}
}
