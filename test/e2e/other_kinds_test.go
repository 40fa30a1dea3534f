// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// askingCharts are charts that ask a cluster for its kinds, as published ones do: in the whole list, for a kind that they make
// nothing of, and beside a Secret that they write without quotes once it is there, with its checksum at the pods.
func askingCharts(kind string) map[string]chart {
	asks := fmt.Sprintf("{{ if .Capabilities.APIVersions.Has %q }}{{ end }}\n", kind)
	return map[string]chart{
		"listing": {"templates/text.yaml": configMap("{{ .Release.Name }}", `{{ has "example.org/v1/None" .Capabilities.APIVersions | quote }}`)},
		"asking":  {"templates/text.yaml": asks + configMap("{{ .Release.Name }}", "same")},
		"grafana": {
			"templates/secret.yaml": asks + `{{ $old := lookup "v1" "Secret" .Release.Namespace .Release.Name }}` + secretTemplate("{{ .Release.Name }}",
				"data:\n  password: {{ if $old }}{{ index $old.data \"password\" }}{{ else }}{{ randAlphaNum 16 | b64enc | quote }}{{ end }}\n"),
			"templates/pods.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}}
    spec: {containers: [{name: grafana, image: "example.org/grafana:1"}]}
`,
		},
	}
}

// TestOtherKindsUpgradeNothing has 20 CRDs come to a cluster with 30 add-ons whose charts ask for kinds: none gets a revision, and
// no pod restarts.
func TestOtherKindsUpgradeNothing(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	group := tn.namespace + ".kinds.test"
	var addons []addonsv1.Addon
	for name, c := range askingCharts(group + "/v1/Thing") {
		path := tn.writeChart(name, "1.0.0", c)
		for i := range 10 {
			addons = append(addons, tn.addon(name+"-"+strconv.Itoa(i), path))
		}
	}
	start := s.mark(t)
	tn.install(addons...)
	looks := 0
	for _, e := range start.requests(t, tn.clusterUser("prod")) {
		if is := e.ObjectRef; e.Verb == "get" && is != nil && is.Resource == "namespaces" && is.Name == tn.namespace {
			looks++
		}
	}
	tn.Expect(looks).To(BeNumerically("<=", len(addons)/2), "those that come together look at their namespace together")
	podsOf := func() map[string]string {
		all, uids := &corev1.PodList{}, map[string]string{}
		must.Succeed(t, s.List(t.Context(), all, client.InNamespace(tn.namespace)))
		for i := range all.Items {
			uids[all.Items[i].Name] = string(all.Items[i].UID)
		}
		return uids
	}
	before := podsOf()
	tn.Expect(before).To(HaveLen(10))
	factsOf := func(addon string) string {
		record := &corev1.Secret{}
		must.Succeed(t, s.Get(t.Context(), tn.key("sh.helm.release.v1."+addon+".v1"), record))
		summary, _ := deliver.SummaryOf(&record.ObjectMeta)
		return summary.FactsUsed
	}
	known := factsOf("listing-0")
	for i := range 20 {
		kind := "Thing"
		if i > 0 {
			kind += strconv.Itoa(i)
		}
		makeKind(t, s, group, kind)
		if 2 < i && i < 19 { // they are looked for after pauses
			continue
		}
		poll(t, patience, "the record is to know the facts", func() error {
			if is := factsOf("listing-0"); is != known {
				known = is
				return nil
			}
			return fmt.Errorf("it has those before kind %d", i)
		})
	}
	tn.awaitCluster("prod", "nothing but facts has changed", installedAs("listing-0", 1, ""), func(ca *addonsv1.ClusterAddon) error {
		for i := range 10 {
			if text := statusOf(ca, fmt.Sprint("grafana-", i)).Message; text == "" {
				return fmt.Errorf("nothing says that grafana-%d would be rendered otherwise", i)
			}
		}
		return nil
	})
	for _, a := range addons {
		tn.Expect(s.release(t, tn.namespace, a.Name).revision).To(Equal(1), a.Name)
	}
	tn.Expect(podsOf()).To(Equal(before))
	ready := 0
	for _, note := range tn.notesThatBegin("AddonReady", "") {
		n := 1
		_, _ = fmt.Sscanf(note, "%d add-ons are ready", &n) // else it is of one
		ready += n
	}
	tn.Expect(ready).To(Equal(len(addons)), "one each, of the installation")

	tn.changeAddon("platform", "grafana-0", withValues(map[string]any{"other": true}))
	tn.awaitCluster("prod", "what somebody asks for comes", installedAs("grafana-0", 2, ""), installedAs("grafana-1", 1, ""))
}
