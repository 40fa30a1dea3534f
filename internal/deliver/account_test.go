// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// allowed lets the ServiceAccount tenant of a namespace do all with some resources there.
func (e *env) allowed(ns, resources string) {
	e.t.Helper()
	e.apply("kubectl", strings.NewReplacer("NS", ns, "RESOURCES", resources).Replace(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: NS}
rules: [{apiGroups: [""], resources: [RESOURCES], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: ServiceAccount, name: tenant, namespace: NS}]
`))
}

// TestAccountThatMayNotKeepRecords delivers as a ServiceAccount. The manager writes its record only where the account may
// create Secrets, too.
func TestAccountThatMayNotKeepRecords(t *testing.T) {
	e, ns := beside(t)
	cfg := rest.CopyConfig(config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:tenant", ns)}
	actor, err := client.New(cfg, client.Options{Mapper: e.target.Client.RESTMapper()})
	e.Expect(err).NotTo(HaveOccurred())
	as := e.target
	as.Own, as.Client = as.Client, actor
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.ServiceAccount = "tenant"

	e.allowed(ns, "configmaps")
	e.Eventually(func() (deliver.Outcome, error) { // roles take a moment
		e.clock.step(10 * time.Minute)
		return e.d.Ensure(e.ctx, as, want)
	}).WithTimeout(30 * time.Second).Should(And(HaveField("Phase", addonsv1.AddonFailed), HaveField("Reason", object.ReasonForbidden), HaveField("Message", ContainSubstring("create Secrets"))))
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
	e.Expect(e.records(ns)).To(BeEmpty())

	e.allowed(ns, "configmaps, secrets")
	e.Eventually(func() (deliver.Outcome, error) {
		e.clock.step(10 * time.Minute)
		return e.d.Ensure(e.ctx, as, want)
	}).WithTimeout(30 * time.Second).Should(HaveField("Phase", addonsv1.AddonReady))
}
