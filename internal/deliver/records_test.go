// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestRecordThatIsRefused has something in the cluster that refuses Secrets. The add-on says
// which Secret, and what refuses it, and is installed once nothing does any more.
func TestRecordThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		obstruct     func(e *env, ns string)
		reason, says string
	}{
		"by a quota": {func(e *env, ns string) {
			e.apply("somebody", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few, namespace: "+ns+"}\nspec: {hard: {count/secrets: '0'}}\n")
		}, object.ReasonForbidden, "few"},
		"by an admission policy": {func(e *env, ns string) {
			e.deny(ns, "CREATE", "secrets", "namespaceObject.metadata.name != '"+ns+"'", "'s3cret words'")
		}, object.ReasonObjectRejected, "ValidatingAdmissionPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			c.obstruct(e, ns)
			e.Eventually(func() error {
				probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}}
				return e.target.Client.Create(e.ctx, probe, client.DryRunAll)
			}).WithTimeout(30*time.Second).Should(MatchError(ContainSubstring(c.says)), "it is to be in force")

			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			o := e.settleAs(want, c.reason)
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Message).To(And(ContainSubstring("Secret "+ns+"/sh.helm.release.v1.demo.v1"), ContainSubstring(c.says), Not(ContainSubstring("s3cret"))))
			e.Expect(o.RetryAfter).To(Equal(10 * time.Second))

			for _, kind := range []string{"ResourceQuota", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
				version, namespace, named := "admissionregistration.k8s.io/v1", "", ns
				if kind == "ResourceQuota" {
					version, namespace, named = "v1", ns, "few"
				}
				if live := e.get(version, kind, namespace, named); live != nil {
					e.Expect(e.target.Client.Delete(e.ctx, live)).To(Succeed())
				}
			}
			e.drive(func() (deliver.Outcome, error) {
				e.clock.step(time.Minute)
				o, err := e.d.Ensure(e.ctx, e.target, want)
				o.RetryAfter = min(o.RetryAfter, time.Second)
				return o, err
			}, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonReady })
		})
	}
}

// TestSecretInPlaceOfARecord has a Secret of the next record's name in the cluster. The add-on names it, unless another
// write just made that very record.
func TestSecretInPlaceOfARecord(t *testing.T) {
	for name, there := range map[string]func(e *env, want deliver.Desired) (secret string){
		"somebody made it": func(e *env, want deliver.Desired) string {
			secret := record.SecretName(want.Name, 1)
			e.Expect(e.target.Client.Create(e.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: secret}})).To(Succeed())
			return secret
		},
		"a record that lost its labels": func(e *env, want deliver.Desired) string {
			e.install(want)
			e.install(e.want(want.Namespace, chart{version: "2", manifest: configMap("a", "y")}))
			newest := e.records(want.Namespace)[want.Release].SecretName
			e.edit("somebody", e.get("v1", "Secret", want.Namespace, newest), `{"metadata":{"labels":null}}`)
			e.restart()
			return newest
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			secret := there(e, e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
			want := e.want(ns, chart{version: "3", manifest: configMap("a", "z")})
			o := e.settleAs(want, deliver.ReasonRecordUnreadable)
			e.Expect(o.Message).To(ContainSubstring("Secret " + ns + "/" + secret))
			e.Expect(o.RetryAfter).To(Equal(10 * time.Second))
			e.delete(e.get("v1", "Secret", ns, secret))
			e.clock.step(time.Minute)
			e.install(want)
		})
	}
	t.Run("another write came first", func(t *testing.T) {
		e, ns := beside(t)
		target := e.through(func(next http.RoundTripper) roundTrip {
			return func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
					again := r.Clone(r.Context())
					again.Body, _ = r.GetBody()
					first, err := next.RoundTrip(again)
					if err != nil {
						return nil, err
					}
					_ = first.Body.Close()
				}
				return next.RoundTrip(r)
			}
		})
		_, err := e.d.Ensure(e.ctx, target, e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
		e.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
	})
}

// TestRecordLosesItsLabels sets the status of a record that was one when the records were listed.
func TestRecordLosesItsLabels(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	e.install(want)
	newest := e.records(ns)[want.Release]
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: newest.SecretName}}
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	e.Expect(e.target.Client.Patch(e.ctx, secret, strip)).To(Succeed())
	store := &record.Store{Client: e.target.Client, Writer: e.target.Secrets, Release: want.Release, Clock: e.clock}
	e.Expect(store.SetStatus(e.ctx, newest, helmcommon.StatusSuperseded, "by a newer revision")).To(Succeed())
	e.Expect(e.get("v1", "Secret", ns, newest.SecretName).GetResourceVersion()).To(Equal(secret.ResourceVersion), "it is left")
}

// repack changes what a key of a record holds: JSON in gzip.
func repack(t *testing.T, data []byte, change func(map[string]any)) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	must.Succeed(t, err)
	plain, err := io.ReadAll(r)
	must.Succeed(t, err)
	content := map[string]any{}
	must.Succeed(t, json.Unmarshal(plain, &content))
	change(content)
	if plain, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(plain)
	_ = w.Close()
	return packed.Bytes()
}

// TestDamagedRecordIsTold damages the record of an installed add-on in ways that leave its
// metadata as it was. Whatever is done with the add-on then says so, and changes nothing.
func TestDamagedRecordIsTold(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, data map[string][]byte){
		"no key chandler": func(_ *testing.T, data map[string][]byte) { delete(data, "chandler") },
		"another format": func(t *testing.T, data map[string][]byte) {
			data["chandler"] = repack(t, data["chandler"], func(state map[string]any) { state["format"] = 99 })
		},
		"a hook that is null": func(t *testing.T, data map[string][]byte) {
			packed, err := base64.StdEncoding.DecodeString(string(data["release"]))
			must.Succeed(t, err)
			packed = repack(t, packed, func(release map[string]any) { release["hooks"] = []any{nil} })
			data["release"] = []byte(base64.StdEncoding.EncodeToString(packed))
		},
		"the rest is in other Secrets, as v0.1.0 left it": func(t *testing.T, data map[string][]byte) {
			data["chandler"] = repack(t, data["chandler"], func(state map[string]any) {
				state["parts"] = []any{map[string]any{"name": "sh.helm.release.v1.demo.v1.part1.0123456789", "sha256": "0123456789"}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			e.install(want)
			spoil := func(policy addonsv1.DeletionPolicy) {
				secret := &corev1.Secret{}
				e.Expect(e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: ns, Name: "sh.helm.release.v1.demo.v1"}, secret)).To(Succeed())
				secret.Annotations["addons.cluster.x-k8s.io/deletion-policy"] = string(policy)
				damage(t, secret.Data)
				e.Expect(e.target.Client.Update(e.ctx, secret)).To(Succeed())
				e.restart()
			}
			told := func(what string, o deliver.Outcome, err error) {
				t.Helper()
				e.Expect(err).NotTo(HaveOccurred(), what)
				e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), what)
				e.Expect(o.Reason).To(Equal(deliver.ReasonRecordUnreadable), what)
				e.Expect(o.Message).To(ContainSubstring(ns+"/sh.helm.release.v1.demo.v1"), what)
				e.Expect(o.Gone).To(BeFalse(), what)
			}
			spoil(addonsv1.DeletionPolicyDelete)
			o, err := e.d.Ensure(e.ctx, e.target, e.want(ns, chart{version: "2", manifest: configMap("a", "y")}))
			told("an upgrade", o, err)
			e.restart()
			o, err = e.repair(want.Release)
			told("a repair", o, err)
			_, known, err := e.d.Holds(e.ctx, e.target, want.Release)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(known).To(BeFalse())
			o, err = e.d.Remove(e.ctx, e.target, want.Release)
			told("a removal", o, err)
			spoil(addonsv1.DeletionPolicyOrphan)
			o, err = e.d.Remove(e.ctx, e.target, want.Release)
			told("letting go", o, err)
			e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(HaveKeyWithValue("key", "x"))
		})
	}
}

// TestRecordThatIsntReadIsNoDamage loses the connection while a record is read.
func TestRecordThatIsntReadIsNoDamage(t *testing.T) {
	e, ns := alone(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
	e.restart()
	target := e.through(func(next http.RoundTripper) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/sh.helm.release.v1.demo.v1") {
				return nil, errCut
			}
			return next.RoundTrip(r)
		}
	})
	_, err := e.d.Ensure(e.ctx, target, e.want(ns, chart{version: "2", manifest: configMap("a", "y")}))
	e.Expect(err).To(MatchError(errCut), "so it is tried again, without a word of damage")
}

// TestRecordThatIsHelmsAloneNow has the record of an installation under way lose what Chandler
// keeps in it, after it was listed.
func TestRecordThatIsHelmsAloneNow(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: deployment("app")})
	o := e.ensure(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonInstalling))
	e.restart()
	target := e.through(func(next http.RoundTripper) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err != nil || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/secrets/sh.helm.release") {
				return answer, err
			}
			return rewritten(answer, func(secret map[string]any) {
				delete(secret["data"].(map[string]any), "chandler")
				delete(secret["metadata"].(map[string]any), "annotations")
			})
		}
	})
	o, err := e.d.Ensure(e.ctx, target, want)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonRecordUnreadable))
}

// TestLostProofs has a ClusterAddon that has lost what it knew of its records, as after a move. A record that holds what is
// made once more is proven without a write, whatever its salt is: those of an earlier version have none.
func TestLostProofs(t *testing.T) {
	for name, change := range map[string]func(*record.Record){
		"as it was made": func(*record.Record) {}, "without a salt": func(rec *record.Record) { rec.Seal("") },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			e.install(want)
			store := &record.Store{Client: e.target.Client, Writer: e.target.Secrets, Release: want.Release, Clock: e.clock}
			rec, err := store.Newest(e.ctx)
			e.Expect(err).NotTo(HaveOccurred())
			change(rec)
			e.Expect(store.Update(e.ctx, rec)).To(Succeed())
			e.restart()
			e.proofs.kept = map[deliver.Release]string{}
			e.meter.reset()
			o := e.install(want)
			e.Expect(o.Revision).To(BeEquivalentTo(1))
			e.expectWrites(0, "it is proven")
			e.Expect(o.Proof).NotTo(BeEmpty())
		})
	}
}
