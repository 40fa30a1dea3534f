// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render"
)

// templateCacheSize is in entries: one for each add-on with a template on each
// cluster, of a few kilobytes.
const templateCacheSize = 8192

// templateCache keeps what templates made of the same input, so that an event
// on a Cluster that changes nothing a template uses stays cheap.
type templateCache struct{ entries *lru.Cache }

func newTemplateCache() *templateCache { return &templateCache{entries: lru.New(templateCacheSize)} }

// valuesTemplate makes values from the add-on's template.
func (p *pass) valuesTemplate(ctx context.Context, a *addon) (map[string]any, error) {
	name := fmt.Sprintf("addons[%s].valuesTemplate", a.Name)
	data, err := p.templateData(ctx, a.ValuesTemplate)
	if err != nil {
		return nil, err
	}
	ofClusterStack := a.ValuesTemplateMode == addonsv1.ValuesTemplateModeClusterStack
	strict := !ofClusterStack && a.ValuesTemplateMode != addonsv1.ValuesTemplateModeLenient
	parse := render.ParseValues
	if !strict {
		parse = render.ParseValuesLeniently
	}
	if ofClusterStack {
		data["Cluster"] = clusterstack.ClusterView(data["Cluster"].(map[string]any))
	}
	key, err := hash([]any{name, a.ValuesTemplate, a.ValuesTemplateMode, data})
	if err != nil {
		return nil, err
	}
	if text, ok := p.templates.entries.Get(key); ok {
		return parse([]byte(text.(string)))
	}
	text, err := p.Renderer.Template(ctx, render.TemplateRequest{Name: name, Text: a.ValuesTemplate, Data: data, Strict: strict})
	if err != nil {
		return nil, err
	}
	if ofClusterStack {
		unwrapped, err := clusterstack.Unwrap([]byte(text))
		if err != nil {
			return nil, &inputError{reason: reasons.ValuesInvalid, err: fmt.Errorf("%s: %w", name, err)}
		}
		text = string(unwrapped)
	}
	values, err := parse([]byte(text))
	if err != nil {
		return nil, &inputError{reason: reasons.ValuesInvalid, err: fmt.Errorf("%s makes what can't be used, correct it: %w", name, err)}
	}
	p.templates.entries.Add(key, text)
	return values, nil
}

// templateData makes the roots that a template may refer to. An object is only
// read, and from then on watched, if the template has its root's name in it.
func (p *pass) templateData(ctx context.Context, text string) (map[string]any, error) {
	cluster, err := clusterData(p.cluster)
	if err != nil {
		return nil, err
	}
	data := map[string]any{"Cluster": cluster}
	for root, ref := range map[string]clusterv1.ContractVersionedObjectReference{
		"ControlPlane": p.cluster.Spec.ControlPlaneRef,
		"InfraCluster": p.cluster.Spec.InfrastructureRef,
	} {
		if !ref.IsDefined() || !strings.Contains(text, root) {
			continue
		}
		obj, err := p.providerObject(ctx, ref)
		if errors.Is(err, errNotNamespaced) {
			return nil, &inputError{reason: reasons.ProviderObjectRefused, err: fmt.Errorf(".%s, %s %s: %w", root, ref.Kind, ref.Name, err)}
		}
		if err != nil {
			return nil, &inputError{reason: reasons.ProviderObjectUnavailable, wait: true,
				err: fmt.Errorf("reading .%s, %s %s: %w", root, ref.Kind, p.keyOf(ref.Name), err)}
		}
		data[root] = withoutNoise(obj.Object)
	}
	return data, nil
}

func clusterData(cluster *clusterv1.Cluster) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return nil, fmt.Errorf("converting Cluster %s: %w", cluster.Name, err)
	}
	content["apiVersion"], content["kind"] = clusterv1.GroupVersion.String(), "Cluster"
	return withoutNoise(content), nil
}

// withoutNoise leaves out what changes with every write and means nothing in a
// template.
func withoutNoise(content map[string]any) map[string]any {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	delete(metadata, "resourceVersion")
	slim := maps.Clone(content)
	slim["metadata"] = metadata
	return slim
}
