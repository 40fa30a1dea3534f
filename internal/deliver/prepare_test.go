// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestKeyThatLeftStringDataGoes from the Secret. The record has the manifest as it was rendered.
func TestKeyThatLeftStringDataGoes(t *testing.T) {
	e, ns := alone(t)
	secret := func(data string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {plain: eA==, b: b3RoZXI=}\nstringData: {" + data + "}\n"
	}
	e.install(e.want(ns, chart{version: "1", manifest: secret("a: one, old: two")}))
	e.install(e.want(ns, chart{version: "2", manifest: secret("a: three, b: wins")}))
	data, _, err := unstructured.NestedStringMap(e.get("v1", "Secret", ns, "s").Object, "data")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(data).To(Equal(map[string]string{"plain": "eA==", "a": "dGhyZWU=", "b": "d2lucw=="}))
	releases := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns)))
	deployed, err := releases.Deployed("demo")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(deployed.(*helmrelease.Release).Manifest).To(Equal(secret("a: three, b: wins")))
}

// TestDeploymentIsRecreated from now on, after it was rolled by default.
func TestDeploymentIsRecreated(t *testing.T) {
	e, ns := alone(t)
	e.install(e.want(ns, chart{version: "1", manifest: deployment("app")}))
	recreate := strings.Replace(deployment("app"), "replicas: 1", "replicas: 1\n  strategy: {type: Recreate}", 1)
	e.install(e.want(ns, chart{version: "2", manifest: recreate}))
	strategy, _, err := unstructured.NestedMap(e.get("apps/v1", "Deployment", ns, "app").Object, "spec", "strategy")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(strategy).To(Equal(map[string]any{"type": "Recreate"}))
	e.install(e.want(ns, chart{version: "3", manifest: deployment("app")}))
}
