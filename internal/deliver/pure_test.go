// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

func TestNext(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ours := func(status, digest string) Summary {
		return Summary{Revision: 3, Status: status, Digest: digest, Owned: true, Complete: true, Owner: "a/a", ModifiedAt: now}
	}
	helms := func(status string) Summary { return Summary{Revision: 3, Status: status, ModifiedAt: now} }
	rewritten := func(status string, age time.Duration) Summary {
		return Summary{Revision: 3, Status: status, Owned: true, Owner: "a/a", ModifiedAt: now.Add(-age)}
	}
	by := func(uid types.UID) Summary {
		s := ours("deployed", "e")
		s.OwnerUID = uid
		return s
	}
	renew := ours("deployed", "d")
	renew.RenewAt = now
	for name, tc := range map[string]struct {
		records []Summary
		policy  addonsv1.AdoptionPolicy
		owner   string
		step    step
		reason  string
	}{
		"nothing there":                   {step: stepBegin},
		"deployed":                        {records: []Summary{ours("deployed", "d")}, step: stepSettled},
		"deployed with other inputs":      {records: []Summary{ours("deployed", "e")}, step: stepBegin},
		"a certificate is due":            {records: []Summary{renew}, step: stepBegin},
		"pending":                         {records: []Summary{ours("pending-upgrade", "d")}, step: stepResume},
		"pending with other inputs":       {records: []Summary{ours("pending-upgrade", "e")}, step: stepBegin},
		"failed":                          {records: []Summary{ours("failed", "d")}, step: stepResume},
		"being removed":                   {records: []Summary{ours("uninstalling", "d")}, step: stepBegin},
		"of another ClusterAddon":         {records: []Summary{ours("deployed", "d")}, owner: "b/b", step: stepRefuse, reason: ReasonReleaseOwnedByOther},
		"Helm's":                          {records: []Summary{helms("deployed")}, step: stepRefuse, reason: ReasonReleaseExists},
		"Helm's, to be adopted":           {records: []Summary{helms("deployed")}, policy: addonsv1.AdoptionPolicyAdopt, step: stepBegin},
		"Helm's, uninstalled":             {records: []Summary{helms("uninstalled")}, step: stepBegin},
		"Helm upgraded it":                {records: []Summary{rewritten("deployed", 0)}, step: stepBegin},
		"Helm upgrades it at this moment": {records: []Summary{rewritten("pending-upgrade", 0)}, step: stepRefuse, reason: ReasonReleaseLocked},
		"taken over":                      {records: []Summary{by("second"), by("first")}, step: stepRefuse, reason: ReasonReleaseTakenOver},
		"to be taken over":                {records: []Summary{by("second"), by("third")}, step: stepBegin},
		"taken back":                      {records: []Summary{by("first"), by("second")}, step: stepBegin},
		"Helm uninstalls ours":            {records: []Summary{rewritten("uninstalling", 0)}, step: stepRefuse, reason: ReasonReleaseLocked},
		"Helm uninstalls its own":         {records: []Summary{helms("uninstalling")}, policy: addonsv1.AdoptionPolicyAdopt, step: stepRefuse, reason: ReasonReleaseLocked},
		"Helm never finished":             {records: []Summary{rewritten("pending-upgrade", time.Hour)}, step: stepBegin},
	} {
		t.Run(name, func(t *testing.T) {
			want := &Desired{Owner: "a/a", OwnerUID: "first", Adoption: tc.policy, ProgressDeadline: 10 * time.Minute}
			if tc.owner != "" {
				want.Owner = tc.owner
			}
			got := next(tc.records, "d", want, now)
			if got.step != tc.step || got.reason != tc.reason {
				t.Errorf("got %+v", got)
			}
			if (got.message != "") != (tc.reason != "") {
				t.Errorf("message %q", got.message)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	for statuses, want := range map[string]bool{
		"": false, "failed": false, "failed superseded": true, "deployed": true, "pending-upgrade deployed": true,
		"uninstalled deployed": false, "failed uninstalling superseded": false,
	} {
		var records []Summary
		for _, s := range strings.Fields(statuses) {
			records = append(records, Summary{Status: s})
		}
		if got := record.Installed(records); got != want {
			t.Errorf("%q: %t", statuses, got)
		}
	}
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

func TestWaves(t *testing.T) {
	objects := []*unstructured.Unstructured{
		object("v1", "Namespace", "ns"), object("v1", "Secret", "s"), object("v1", "ConfigMap", "c"),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		object("rbac.authorization.k8s.io/v1", "Role", "r"), object("rbac.authorization.k8s.io/v1", "RoleBinding", "rb"),
		object("v1", "Service", "svc"), object("apps/v1", "Deployment", "d"),
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"),
		object("example.com/v1", "Service", "not-the-core-one"), object("example.com/v1", "Widget", "w"),
	}
	want := [][]string{{"ns"}, {"c", "s"}, {"crd"}, {"r"}, {"rb"}, {"svc"}, {"d"}, {"v"}, {"not-the-core-one", "w"}}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	got := waves(objects)
	if len(got) != len(want) {
		t.Fatalf("%d waves", len(got))
	}
	for i, wave := range got {
		names := map[string]bool{}
		for _, o := range wave {
			names[o.GetName()] = true
		}
		for _, name := range want[i] {
			if !names[name] || len(names) != len(want[i]) {
				t.Errorf("wave %d is %v, want %v", i, names, want[i])
			}
		}
	}
}

func TestRemovalWaves(t *testing.T) {
	var entries []record.Entry
	for _, o := range []*unstructured.Unstructured{
		object("v1", "Namespace", "n"), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		object("v1", "ServiceAccount", "sa"), object("apps/v1", "Deployment", "d"),
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"), object("example.com/v1", "Widget", "w"),
	} {
		entries = append(entries, record.EntryOf(o))
	}
	var got [][]string
	for _, wave := range removalWaves(entries) {
		var names []string
		for _, e := range wave {
			names = append(names, e.Name)
		}
		got = append(got, names)
	}
	if d := cmp.Diff([][]string{{"w"}, {"v", "d", "sa"}, {"crd"}, {"n"}}, got); d != "" {
		t.Error(d)
	}
}

func TestHookOrder(t *testing.T) {
	h := func(kind, name string, weight int, events ...helmrelease.HookEvent) *helmrelease.Hook {
		return &helmrelease.Hook{Kind: kind, Name: name, Weight: weight, Events: events}
	}
	got := hooksFor([]*helmrelease.Hook{
		h("Job", "z", -5, "pre-install"), h("Job", "b", 0, "pre-install", "pre-upgrade"), h("Job", "a", 0, "pre-install"),
		h("ServiceAccount", "b", 0, "pre-install"), h("Job", "other", 0, "post-install"), h("Job", "last", 10, "pre-install"),
	}, helmrelease.HookPreInstall)
	var names []string
	for _, hook := range got {
		names = append(names, hook.Kind+" "+hook.Name)
	}
	if d := cmp.Diff([]string{"Job z", "Job a", "ServiceAccount b", "Job b", "Job last"}, names); d != "" {
		t.Error(d)
	}
}

func TestClaim(t *testing.T) {
	me, other := Release{Namespace: "a", Name: "me"}, Release{Namespace: "a", Name: "other"}
	leaving := Release{Namespace: "a", Name: "leaving"}
	labelled := func(r Release) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: map[string]string{addonsv1.AddonLabel: r.Name, addonsv1.AddonNamespaceLabel: r.Namespace}}
	}
	managed := func(manager string) metav1.ObjectMeta {
		return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager}}}
	}
	kept := func(by Release) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{KeptByAnnotation: by.String()}}
	}
	halfway := labelled(me)
	halfway.ManagedFields = managed(FieldManager(leaving)).ManagedFields
	named := func(name string) record.ObjectKey { return record.ObjectKey{Kind: "Namespace", Name: name} }
	helms := managed("helm")
	helms.Annotations = map[string]string{helmReleaseName: "me", helmReleaseNamespace: "a"}
	fail, ifEqual, adopt := addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdoptIfEqual, addonsv1.AdoptionPolicyAdopt
	for name, tc := range map[string]struct {
		object    metav1.ObjectMeta
		policy    addonsv1.AdoptionPolicy
		key       record.ObjectKey
		crd, helm bool
		had       bool
		want      claim
		reason    string
	}{
		"ours":                            {object: labelled(me), policy: fail, had: true, want: claimOwn},
		"somebody's, with our labels":     {object: labelled(me), policy: fail, want: claimRefuse, reason: ReasonObjectExists},
		"ours, label taken off":           {object: managed(FieldManager(me)), policy: fail, want: claimOwn},
		"another add-on's":                {object: labelled(other), policy: adopt, want: claimRefuse, reason: ReasonOwnedByOther},
		"another add-on's, of crds/":      {object: labelled(other), policy: adopt, crd: true, want: claimLeave},
		"somebody's, Fail":                {object: managed("kubectl"), policy: fail, want: claimRefuse, reason: ReasonObjectExists},
		"somebody's, none":                {object: managed("kubectl"), want: claimRefuse, reason: ReasonObjectExists},
		"somebody's, AdoptIfEqual":        {object: managed("kubectl"), policy: ifEqual, want: claimIfEqual},
		"somebody's, Adopt":               {object: managed("kubectl"), policy: adopt, want: claimAdopt},
		"somebody's, of crds/":            {object: managed("kubectl"), policy: fail, crd: true, want: claimLeave},
		"a leaving add-on's":              {object: labelled(leaving), policy: fail, want: claimTakeOver},
		"ours, was about to go over":      {object: halfway, policy: fail, want: claimTakeOver},
		"kept by us":                      {object: kept(me), policy: fail, want: claimAdopt},
		"kept by us, of crds/":            {object: kept(me), policy: fail, crd: true, want: claimAdopt},
		"kept by another":                 {object: kept(other), policy: fail, want: claimRefuse, reason: ReasonObjectExists},
		"kept by us, another's by now":    {object: metav1.ObjectMeta{Labels: labelled(other).Labels, Annotations: kept(me).Annotations}, policy: fail, want: claimRefuse, reason: ReasonOwnedByOther},
		"our namespace":                   {object: labelled(me), key: named("n"), policy: fail, had: true, want: claimOwn},
		"namespace":                       {object: managed("kubectl"), key: named("n"), policy: fail, want: claimShare},
		"namespace that was shared":       {object: managed(FieldManager(me)), key: named("n"), want: claimShare},
		"another's namespace":             {object: labelled(other), key: named("n"), policy: adopt, want: claimShare},
		"namespace, Adopt":                {object: managed("kubectl"), key: named("n"), policy: adopt, want: claimAdopt},
		"shared namespace, AdoptIfEqual":  {object: managed(FieldManager(me)), key: named("n"), policy: ifEqual, want: claimIfEqual},
		"namespace kept by us":            {object: kept(me), key: named("n"), policy: fail, want: claimAdopt},
		"the release's namespace, Adopt":  {object: kept(me), key: named("a"), policy: adopt, want: claimShare},
		"kube-system, Adopt":              {object: managed("kubectl"), key: named("kube-system"), policy: adopt, want: claimShare},
		"default, AdoptIfEqual":           {object: managed("kubectl"), key: named("default"), policy: ifEqual, want: claimShare},
		"of a Helm release that we adopt": {object: helms, policy: ifEqual, helm: true, want: claimAdopt},
		"of a Helm release, not adopted":  {object: helms, policy: fail, want: claimRefuse, reason: ReasonObjectExists},
	} {
		t.Run(name, func(t *testing.T) {
			c := claimant{release: me, key: tc.key, manager: FieldManager(me), policy: tc.policy, crd: tc.crd, had: tc.had, helm: tc.helm, leaving: []Release{leaving}}
			got, reason, _ := c.decide(&tc.object)
			if got != tc.want || reason != tc.reason {
				t.Errorf("got %v %s", got, reason)
			}
		})
	}
}

// TestOwns tells what is a release's to delete.
func TestOwns(t *testing.T) {
	me, other := Release{Namespace: "a", Name: "me"}, Release{Namespace: "a", Name: "other"}
	made := func(labels, helm Release, managers ...string) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{UID: "now"}
		if labels != (Release{}) {
			m.Labels = map[string]string{addonsv1.AddonLabel: labels.Name, addonsv1.AddonNamespaceLabel: labels.Namespace}
		}
		if helm != (Release{}) {
			m.Annotations = map[string]string{helmReleaseName: helm.Name, helmReleaseNamespace: helm.Namespace}
		}
		for _, manager := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		return m
	}
	nobody := Release{}
	for name, tc := range map[string]struct {
		object *metav1.ObjectMeta
		entry  record.Entry
		want   bool
	}{
		"ours":                             {made(me, nobody), record.Entry{UID: "now"}, true},
		"ours, from before a crash":        {made(me, nobody), record.Entry{}, true},
		"we made it anew":                  {made(me, nobody, FieldManager(me)), record.Entry{UID: "former"}, true},
		"somebody made it anew":            {made(me, nobody, "kubectl"), record.Entry{UID: "former"}, false},
		"another add-on's":                 {made(other, me), record.Entry{UID: "now", Helm: true}, false},
		"of the Helm release":              {made(nobody, me), record.Entry{Helm: true}, true},
		"of another Helm release by now":   {made(nobody, other), record.Entry{Helm: true}, false},
		"nobody's by now":                  {made(nobody, nobody), record.Entry{Helm: true}, false},
		"of a Helm release, though not in": {made(nobody, me), record.Entry{UID: "now"}, false},
	} {
		r := &run{release: me, manager: FieldManager(me)}
		if got := r.owns(tc.object, tc.entry); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClassify(t *testing.T) {
	key := record.ObjectKey{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "b"}
	secret := record.ObjectKey{Kind: "Secret", Namespace: "a", Name: "b"}
	status := func(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
	}
	noMatch := fmt.Errorf("x: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "g", Kind: "K"}})
	for name, tc := range map[string]struct {
		err    error
		key    record.ObjectKey
		own    bool
		kind   kindOfFailure
		reason string
		words  string
	}{
		"network":              {err: errors.New("connection refused"), kind: transient},
		"throttled":            {err: apierrors.NewTooManyRequests("later", 7), kind: transient},
		"unavailable":          {err: apierrors.NewServiceUnavailable("x"), kind: transient},
		"etcd":                 {err: status(500, "", "etcdserver: leader changed"), kind: transient},
		"internal":             {err: apierrors.NewInternalError(errors.New("x")), kind: transient},
		"other write first":    {err: apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("x")), kind: transient},
		"webhook down":         {err: apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), kind: deferred, reason: ReasonWaitingForWebhook, words: `"w"`},
		"webhook denies":       {err: status(403, metav1.StatusReasonForbidden, `admission webhook "w" denied the request`), kind: rejected, reason: ReasonForbidden, words: "denied"},
		"forbidden":            {err: status(403, metav1.StatusReasonForbidden, "no"), kind: rejected, reason: ReasonForbidden},
		"invalid":              {err: status(422, metav1.StatusReasonInvalid, "spec.x: bad"), kind: rejected, reason: ReasonObjectRejected, words: "spec.x"},
		"immutable":            {err: status(422, metav1.StatusReasonInvalid, "x", metav1.StatusCause{Message: "field is immutable"}), kind: rejected, reason: ReasonImmutableField},
		"malformed":            {err: status(500, "", "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema"), kind: rejected, reason: ReasonObjectRejected, words: ".spec.foo"},
		"malformed Secret":     {err: status(500, "", `failed to create typed patch object (x): .data.k: expected string, got "hunter2"`), key: secret, kind: rejected, reason: ReasonObjectRejected, words: ".data.k: expected string"},
		"invalid Secret":       {err: status(422, metav1.StatusReasonInvalid, "hunter2", metav1.StatusCause{Field: "data[k]", Message: "hunter2"}), key: secret, kind: rejected, reason: ReasonObjectRejected, words: "data[k]"},
		"Secret, server error": {err: status(500, metav1.StatusReasonInternalError, "hunter2"), key: secret, kind: transient},
		"fields of another":    {err: status(409, metav1.StatusReasonConflict, "x", metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "kubectl"`}), kind: rejected, reason: ReasonFieldConflict, words: ".spec.replicas"},
		"no such kind":         {err: noMatch, kind: rejected, reason: ReasonKindMissing},
		"kind is coming":       {err: noMatch, own: true, kind: deferred, reason: ReasonWaitingForCRDs},
		"a name that none has": {err: errors.New("invalid resource name"), key: record.ObjectKey{Kind: "Secret", Namespace: "a", Name: "b/c"}, kind: rejected, reason: ReasonObjectRejected, words: "metadata.name may not contain '/'"},
		"namespace, likewise":  {err: errors.New("invalid namespace"), key: record.ObjectKey{Kind: "Secret", Namespace: "%", Name: "b"}, kind: rejected, reason: ReasonObjectRejected, words: "metadata.namespace may not contain '%'"},
		"code 418":             {err: status(http.StatusTeapot, "", "tea"), kind: rejected, reason: ReasonObjectRejected},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.key == (record.ObjectKey{}) {
				tc.key = key
			}
			f := classify(tc.err, tc.key, tc.own)
			if f.kind != tc.kind || f.reason != tc.reason || !strings.Contains(f.message, tc.words) {
				t.Errorf("got %+v", f)
			}
			if strings.Contains(f.message+f.err.Error(), "hunter2") {
				t.Errorf("tells a secret: %+v", f)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	now := time.Unix(0, 0)
	var got []time.Duration
	for range 7 {
		o := b.fail(now, "d", Outcome{Message: "m", Wrote: true})
		got = append(got, o.RetryAfter)
		if waiting, early := b.waiting(now.Add(o.RetryAfter-time.Second), "d"); !early || waiting.RetryAfter != time.Second || waiting.Wrote {
			t.Errorf("waiting: %+v %t", waiting, early)
		}
		if _, early := b.waiting(now, "other"); early {
			t.Error("other inputs don't wait")
		}
		now = now.Add(o.RetryAfter)
		if _, early := b.waiting(now, "d"); early {
			t.Error("it is time")
		}
	}
	s := time.Second
	if d := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}, got); d != "" {
		t.Error(d)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	if got := firstOf([]string{"a", "b", "c", "d", "e"}); got != "a; b; c; and 2 more" {
		t.Error(got)
	}
}
