// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// password is no valid label, which the API server quotes.
const password = "correct-horse-battery!"

// withToken is a ConfigMap that the API server refuses if there is a password in its label.
func withToken(name, label, annotations string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {token: %q}, annotations: {%s}}\n", name, label, annotations)
}

// secretManifest is the manifest of a Secret with a password in it.
func secretManifest(password string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: %q}\n", password)
}

// origins are where the password of an add-on comes from, which its chart has in another object, too.
func origins(t *testing.T) map[string]func(*deliver.Desired, *deliver.Rendering) {
	t.Helper()
	return map[string]func(*deliver.Desired, *deliver.Rendering){
		"values": func(want *deliver.Desired, _ *deliver.Rendering) { want.Sensitive = []string{password} },
		"generated": func(_ *deliver.Desired, made *deliver.Rendering) {
			made.Generated = job.Generated{"randAlphaNum/0123/0/p/x/y": password}
		},
		"a Secret of the manifest": func(_ *deliver.Desired, made *deliver.Rendering) {
			made.Manifest += secretManifest(password)
			made.Objects = chart{manifest: made.Manifest}.render(t).Objects
		},
	}
}

// wantFrom is an add-on whose password comes from somewhere.
func (e *env) wantFrom(ns string, c chart, origin func(*deliver.Desired, *deliver.Rendering)) deliver.Desired {
	want := e.want(ns, c)
	made := c.render(e.t)
	made.Generated = nil
	origin(&want, made)
	want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) { return made, nil }
	return want
}

// expectHidden expects a message about a failure that has no password in it.
func (e *env) expectHidden(o deliver.Outcome, err error) {
	e.t.Helper()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Message).To(ContainSubstring("[hidden]"), "%+v", o)
	e.Expect(o.Message).NotTo(ContainSubstring(password))
	e.Expect(o.Message).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(password))))
}

// tryAgain expects that a failure hides the password in each try, and after a restart.
func (e *env) tryAgain(act func() (deliver.Outcome, error)) {
	e.t.Helper()
	for range 2 {
		e.expectHidden(act())
		e.expectHidden(act()) // in the pause
		e.clock.step(6 * time.Minute)
	}
	e.restart()
	e.expectHidden(act())
}

// refuse has a policy refuse what is done to ConfigMaps of a namespace, with these words.
func (e *env) refuse(ns, operations, words string) {
	e.t.Helper()
	e.deny(ns, operations, "configmaps", "namespaceObject.metadata.name != '"+ns+"'", words)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}, Data: map[string]string{"text": "x"}}
	e.Expect(client.IgnoreAlreadyExists(e.target.Client.Create(e.ctx, probe))).To(Succeed())
	e.Eventually(func() error {
		probe.Data["text"] = time.Now().String()
		if strings.Contains(operations, "DELETE") {
			return e.target.Client.Delete(e.ctx, probe, client.DryRunAll)
		}
		return e.target.Client.Update(e.ctx, probe, client.DryRunAll)
	}).WithTimeout(30*time.Second).ShouldNot(Succeed(), "it is to be in force")
}

// hookWithPassword is a hook that the API server refuses for the password in its label.
func hookWithPassword(event string) []job.Hook {
	return []job.Hook{{Name: "h", Kind: "ConfigMap", Path: "h.yaml", Manifest: withToken("h", password, "helm.sh/hook: "+event), Events: []string{event}}}
}

// TestSecretsAreHidden has the API server refuse and quote what a password is in. This is an object or a hook, of an
// installation or of a removal, when nothing says any more where the values came from. It is an object to be pruned, too. The
// last is an upgrade that fails, and then what it is rolled back to.
func TestSecretsAreHidden(t *testing.T) {
	type origin = func(*deliver.Desired, *deliver.Rendering)
	type act = func() (deliver.Outcome, error)
	plain := configMap("a", "x")
	for what, begin := range map[string]func(e *env, ns string, from origin) act{
		"an object": func(e *env, ns string, from origin) act {
			return e.ensuring(e.wantFrom(ns, chart{version: "1", manifest: withToken("a", password, "")}, from))
		},
		"a hook": func(e *env, ns string, from origin) act {
			return e.ensuring(e.wantFrom(ns, chart{version: "1", manifest: plain, hooks: hookWithPassword("pre-install")}, from))
		},
		"a removal": func(e *env, ns string, from origin) act {
			want := e.wantFrom(ns, chart{version: "1", manifest: plain, hooks: hookWithPassword("pre-delete")}, from)
			e.install(want)
			return func() (deliver.Outcome, error) { return e.d.Remove(e.ctx, e.target, want.Release) }
		},
		"pruning": func(e *env, ns string, from origin) act {
			text := fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {text: %q}\n", password)
			e.install(e.wantFrom(ns, chart{version: "1", manifest: plain + text}, from))
			e.refuse(ns, "DELETE", "'it has ' + oldObject.data.text")
			return e.ensuring(e.want(ns, chart{version: "2", manifest: plain}))
		},
		"a rollback": func(e *env, ns string, from origin) act {
			e.install(e.wantFrom(ns, chart{version: "1", manifest: plain, hooks: hookWithPassword("pre-rollback")}, from))
			want := e.wantFrom(ns, chart{version: "2", manifest: withToken("a", "another-"+password, "")},
				func(want *deliver.Desired, _ *deliver.Rendering) { want.Sensitive = []string{"another-" + password} })
			want.OnFailure = addonsv1.FailurePolicyRollBack
			e.expectHidden(e.d.Ensure(e.ctx, e.target, want)) // the upgrade is refused
			e.clock.step(time.Minute)
			return e.ensuring(want)
		},
	} {
		for title, from := range origins(t) {
			t.Run(what+", "+title, func(t *testing.T) {
				e, ns := beside(t)
				e.tryAgain(begin(e, ns, from))
			})
		}
	}
}

func (e *env) ensuring(want deliver.Desired) func() (deliver.Outcome, error) {
	return func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, e.target, want) }
}

// TestLookedUpSecretStaysHidden has a chart put what it read by lookup from its own Secret into a
// field that the API server refuses and quotes. Somebody else has put that into the Secret.
func TestLookedUpSecretStaysHidden(t *testing.T) {
	e, ns := alone(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	e.install(e.want(ns, chart{version: "1", manifest: secret}))
	e.edit("somebody", e.get("v1", "Secret", ns, "s"), fmt.Sprintf(`{"stringData": {"password": %q}}`, password))

	next := chart{version: "2", manifest: secret + withToken("c", password, "")}
	want := e.want(ns, next)
	want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		_, err := in.Lookup(ctx, []job.Lookup{{APIVersion: "v1", Kind: "Secret", Namespace: ns, Name: "s"}})
		return next.render(t), err
	}
	e.tryAgain(e.ensuring(want))
}

// TestRepairHidesSecrets has somebody change what is at a password of a ConfigMap. The change is
// refused to be taken back, and what is found tells no password either.
func TestRepairHidesSecrets(t *testing.T) {
	const key = "correct-horse-battery" // which can be one of a ConfigMap
	e, ns := alone(t)
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {%s: %q}\n", key, password)
	want := e.wantFrom(ns, chart{version: "1", manifest: manifest}, func(want *deliver.Desired, _ *deliver.Rendering) {
		want.Sensitive = []string{password, key}
	})
	e.install(want)
	e.edit("somebody", e.get("v1", "ConfigMap", ns, "a"), fmt.Sprintf(`{"data": {%q: "x"}}`, key))
	found := e.look(deliver.Repair{Release: want.Release, Report: true})
	e.Expect(changesOf(found)).To(Equal([]string{"a .data." + key}))
	e.Expect(found[0].Hide("it has another " + found[0].Changes[0].Path.String())).To(Equal("it has another .data.[hidden]"))
	e.refuse(ns, "UPDATE", "'it has ' + object.data.map(k, k + object.data[k]).join(',')")
	e.tryAgain(func() (deliver.Outcome, error) { return e.repair(want.Release) })
	found = e.look(deliver.Repair{Release: want.Release, Report: true})
	e.Expect(found[0].Refused).To(And(ContainSubstring("it has [hidden]"), Not(ContainSubstring(key))))
}

// TestRecordKeepsFewSecrets has an add-on with more text in Secrets than a record keeps. The shortest stay hidden after
// a restart, as hardly a message has all of a long one.
func TestRecordKeepsFewSecrets(t *testing.T) {
	e, ns := alone(t)
	sensitive := []string{password}
	for i := range 100 {
		sensitive = append(sensitive, fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 1<<10)))
	}
	want := e.wantFrom(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: hookWithPassword("pre-delete")},
		func(want *deliver.Desired, _ *deliver.Rendering) { want.Sensitive = sensitive })
	e.install(want)
	store := &record.Store{Client: e.target.Client, Release: want.Release, Clock: e.clock}
	rec, err := store.Newest(e.ctx)
	e.Expect(err).NotTo(HaveOccurred())
	kept := len(strings.Join(slices.Concat(rec.State.Sensitive, rec.State.PreviousSensitive), ""))
	e.Expect(kept).To(And(BeNumerically("<=", 64<<10), BeNumerically(">", 60<<10)))
	e.restart()
	e.tryAgain(func() (deliver.Outcome, error) { return e.d.Remove(e.ctx, e.target, want.Release) })
}
