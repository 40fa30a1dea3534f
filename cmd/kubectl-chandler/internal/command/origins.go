// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/deliver/redacted"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// origins returns where the values of a release are from, as far as the user may read these places.
func (c *call) origins(ca *addonsv1.ClusterAddon, release *redacted.Release) *summary.Origins {
	all := c.layers(ca, release)
	is := &summary.Origins{Values: release.Origins(all)}
	for _, l := range all {
		if l.Problem != nil {
			is.Unread = append(is.Unread, summary.Unread{From: l.From, Problem: l.Problem.Error()})
		}
	}
	return is
}

// layers reads the layers of which the values of a release were merged, by the stack's revision. One that can't be read has a problem.
func (c *call) layers(ca *addonsv1.ClusterAddon, release *redacted.Release) (all []values.Layer) {
	of, revision := release.Revision()
	a, err := c.addonAt(revision, c.args[1])
	if err != nil {
		return []values.Layer{{From: "AddonStack " + of, Problem: err}}
	}
	m, noTemplates := c.member(ca)
	r := layers.Reader{Renderer: inProcess{}, Sources: valuesource.NewReader(c.client, c.client, nil), Namespace: ca.Namespace, Cluster: m, Object: c.object}
	sources := a.ValuesFrom
	if noTemplates == nil {
		if sources, noTemplates = r.Named(c, a); noTemplates != nil {
			sources = a.ValuesFrom
		}
	}
	for _, layer := range layers.Of(a, sources) {
		l := values.Layer{From: fmt.Sprintf("AddonStack %s, %s", of, layer.Field)}
		if layer.Source != nil {
			l.From = fmt.Sprintf("%s %s, key %s", layer.Source.Kind, layer.Source.Name, stack.ValuesKey(*layer.Source))
		}
		if layer.Template != nil || layer.Source != nil && strings.Contains(layer.Source.Name, "{{") {
			l.Problem = noTemplates
		}
		if l.Problem == nil {
			l.Values, _, l.Problem = r.Read(c, layer)
		}
		all = append(all, l)
	}
	return all
}

// addonAt returns an add-on as a revision has it.
func (c *call) addonAt(revision, name string) (*addonsv1.Addon, error) {
	kept, spec := &appsv1.ControllerRevision{}, &addonsv1.AddonStackSpec{}
	err := c.read(kept, revision)
	if err == nil {
		spec, err = stack.SpecOf(kept)
	}
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("revision %s has no add-on %s", revision, name)
	}
	return &spec.Addons[at], nil
}

// member returns the cluster as templates see it. Of others than Clusters, the management cluster doesn't have all of that.
func (c *call) member(ca *addonsv1.ClusterAddon) (*member.Member, error) {
	if ref := ca.Spec.ClusterRef; ref != nil {
		return nil, fmt.Errorf("Chandler alone knows what templates see of a %s", ref.Kind)
	}
	cluster := &clusterv1.Cluster{}
	err := c.read(cluster, ca.Spec.ClusterName)
	return member.OfCluster(cluster), err
}

// object reads an object that the Cluster refers to, of a kind that the client doesn't know.
func (c *call) object(ctx context.Context, _ string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	others, err := client.New(c.server, client.Options{})
	if err != nil {
		return nil, err
	}
	mapping, err := others.RESTMapper().RESTMapping(ref.GroupKind())
	if err != nil {
		return nil, err
	}
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(mapping.GroupVersionKind)
	return is, others.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: ref.Name}, is)
}

// inProcess reads values and executes templates without a worker.
type inProcess struct{}

func (inProcess) Values(_ context.Context, req job.Values) (map[string]any, error) {
	return values.Read(&req)
}

func (inProcess) Names(_ context.Context, req job.Names) ([]string, error) {
	return values.RenderNames(&req, job.MostMade)
}

func (inProcess) Template(_ context.Context, req job.Template) (string, error) {
	text, err := values.RenderTemplate(&req, job.MostMade)
	if err != nil {
		return "", err
	}
	return *text, nil
}
