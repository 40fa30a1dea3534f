// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestRecordThatIsRefused has something in the cluster that refuses Secrets. The add-on says
// which Secret, and what refuses it, and is installed once nothing does any more.
func TestRecordThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ obstacle, reason, says string }{
		"by a quota": {`apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: NS}
spec: {hard: {count/secrets: "0"}}
`, object.ReasonForbidden, "few"},
		"by an admission policy": {`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  validations: [{expression: "false", message: "s3cret words"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS}
spec:
  policyName: NS
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}}
`, object.ReasonObjectRejected, "ValidatingAdmissionPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			obstacle := strings.ReplaceAll(c.obstacle, "NS", ns)
			e.apply("somebody", obstacle)
			e.Eventually(func() error {
				probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}}
				return e.target.Client.Create(e.ctx, probe, client.DryRunAll)
			}).WithTimeout(30*time.Second).Should(MatchError(ContainSubstring(c.says)), "it is to be in force")

			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			o := e.settle(want)
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Reason).To(Equal(c.reason))
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

// TestRecordLosesItsLabels sets the status of a record that was one when the records were listed.
func TestRecordLosesItsLabels(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	e.install(want)
	newest := e.records(ns)[want.Release]
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: newest.SecretName}}
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	e.Expect(e.target.Client.Patch(e.ctx, secret, strip)).To(Succeed())
	store := &record.Store{Client: e.target.Client, Release: want.Release, Clock: e.clock}
	e.Expect(store.SetStatus(e.ctx, newest, helmcommon.StatusSuperseded, "by a newer revision")).To(Succeed())
	e.Expect(e.get("v1", "Secret", ns, newest.SecretName).GetResourceVersion()).To(Equal(secret.ResourceVersion), "it is left")
}
