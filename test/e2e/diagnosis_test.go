// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// explainFailure shows what a user would look at after a test has failed: the
// objects. The managers' logs are shown beside.
func (tn *tenant) explainFailure() {
	if !tn.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tn.t.Context()), 10*time.Second)
	defer cancel()
	var all strings.Builder
	stacks := &addonsv1.AddonStackList{}
	if err := world.hub.List(ctx, stacks, client.InNamespace(tn.namespace)); err != nil {
		tn.t.Log(err)
	}
	for i := range stacks.Items {
		s := &stacks.Items[i]
		describe(&all, "AddonStack "+s.Name, s.Status)
	}
	clusterAddons := &addonsv1.ClusterAddonList{}
	if err := world.hub.List(ctx, clusterAddons, client.InNamespace(tn.namespace)); err != nil {
		tn.t.Log(err)
	}
	for i := range clusterAddons.Items {
		ca := &clusterAddons.Items[i]
		describe(&all, "spec of ClusterAddon "+ca.Name, ca.Spec)
		describe(&all, "status of ClusterAddon "+ca.Name, ca.Status)
	}
	tn.t.Logf("namespace %s:\n%s", tn.namespace, all.String())
}

func describe(out *strings.Builder, title string, content any) {
	text, err := yaml.Marshal(content)
	if err != nil {
		text = []byte(err.Error())
	}
	out.WriteString("--- " + title + "\n" + string(text))
}
