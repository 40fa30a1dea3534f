// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// template makes values from the add-on's template.
func (r Reader) template(ctx context.Context, of Layer) (map[string]any, error) {
	a, name := of.Template, of.Field
	data, err := r.templateData(ctx, a, name, a.ValuesTemplate)
	if err != nil {
		return nil, err
	}
	ofClusterStack := a.ValuesTemplateMode == addonsv1.ValuesTemplateModeClusterStack
	strict := !ofClusterStack && a.ValuesTemplateMode != addonsv1.ValuesTemplateModeLenient
	text, err := r.Renderer.Template(ctx, job.Template{Name: name, Text: a.ValuesTemplate, Data: data, Strict: strict})
	if err != nil {
		return nil, err // which begins with the name
	}
	values, err := r.Renderer.Values(ctx, job.Values{Text: []byte(text), Lenient: !strict})
	if inner, ok := values["values"].(string); ok && ofClusterStack {
		text = inner
		values, err = r.Renderer.Values(ctx, job.Values{Text: []byte(text), Lenient: !strict})
	}
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason != job.ReasonWaitingForRenderer {
		return nil, failure.New(failed.Reason, "%s makes what can't be used, correct it: %w%s", name, failed.Err, keyOfLine(text, failed.Err.Error()))
	}
	return values, err
}

var (
	lineNumber = regexp.MustCompile(`\bline (\d+)\b`)
	yamlKey    = regexp.MustCompile(`^[\s-]*([\w.-]{1,63}:)`)
)

// keyOfLine returns words on the line that an error is about: the key that it begins with, as the value may be a secret.
func keyOfLine(text, message string) string {
	found := lineNumber.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	number, err := strconv.Atoi(found[1])
	lines := strings.Split(text, "\n")
	if err != nil || number < 1 || number > len(lines) {
		return ""
	}
	key := yamlKey.FindStringSubmatch(lines[number-1])
	if key == nil {
		return ""
	}
	return fmt.Sprintf("; line %d begins with %q", number, key[1])
}

// templateData makes the roots that a template of the add-on may refer to, which is in the field. An object is only
// read, and from then on watched, if the template has its root's name in it.
func (r Reader) templateData(ctx context.Context, a *addonsv1.Addon, field, text string) (map[string]any, error) {
	data := map[string]any{"Member": r.Cluster.View()}
	if r.Cluster.Cluster == nil {
		if refersToCluster.MatchString(text) {
			return nil, failure.New(job.ReasonValuesInvalid, "%s refers to .Cluster, and %s is none: use .Member", field, r.Cluster)
		}
		return data, nil
	}
	cluster, err := clusterData(r.Cluster.Cluster)
	if err != nil {
		return nil, err
	}
	if a.ValuesTemplateMode == addonsv1.ValuesTemplateModeClusterStack {
		cluster = clusterstack.ClusterView(cluster)
	}
	data["Cluster"] = cluster
	for root, ref := range rootsOf(r.Cluster.Cluster, text) {
		obj, err := r.Object(ctx, root, ref)
		if err != nil {
			return nil, err
		}
		data[root] = withoutNoise(obj.Object)
	}
	return data, nil
}

// refersToCluster matches the root .Cluster.
var refersToCluster = regexp.MustCompile(`\.Cluster\b`)

// Roots returns the objects that the templates of an add-on refer to beside the Cluster, by root.
func (r Reader) Roots(a *addonsv1.Addon) map[string]clusterv1.ContractVersionedObjectReference {
	return rootsOf(r.Cluster.Cluster, strings.Join(append(writtenNames(a.ValuesFrom), a.ValuesTemplate), "\n"))
}

func rootsOf(cluster *clusterv1.Cluster, text string) map[string]clusterv1.ContractVersionedObjectReference {
	roots := map[string]clusterv1.ContractVersionedObjectReference{}
	if cluster == nil {
		return roots
	}
	if ref := cluster.Spec.ControlPlaneRef; ref.IsDefined() && strings.Contains(text, "ControlPlane") {
		roots["ControlPlane"] = ref
	}
	if ref := cluster.Spec.InfrastructureRef; ref.IsDefined() && strings.Contains(text, "InfraCluster") {
		roots["InfraCluster"] = ref
	}
	return roots
}

func clusterData(cluster *clusterv1.Cluster) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return nil, fmt.Errorf("converting Cluster %s: %w", cluster.Name, err)
	}
	content["apiVersion"], content["kind"] = clusterv1.GroupVersion.String(), "Cluster"
	return withoutNoise(content), nil
}

// withoutNoise takes out of an object, which is the caller's own, what changes with every write and means nothing in a template.
func withoutNoise(content map[string]any) map[string]any {
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	return content
}

// writtenNames returns the names in valuesFrom as they are written. Some may be templates.
func writtenNames(refs []addonsv1.ValuesReference) []string {
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	return names
}

func isTemplate(name string) bool { return strings.Contains(name, "{{") }

// Named returns the sources of an add-on's values with the names that they have for the cluster.
func (r Reader) Named(ctx context.Context, a *addonsv1.Addon) ([]addonsv1.ValuesReference, error) {
	written := writtenNames(a.ValuesFrom)
	if !slices.ContainsFunc(written, isTemplate) {
		return a.ValuesFrom, nil
	}
	field := fmt.Sprintf("addons[%s].valuesFrom", a.Name)
	data, err := r.templateData(ctx, a, field, strings.Join(written, "\n"))
	if err != nil {
		return nil, err
	}
	names, err := r.Renderer.Names(ctx, job.Names{Field: field, Templates: written, Data: data})
	if err != nil {
		return nil, err // which begins with the field
	}
	return WithNames(a.ValuesFrom, names, field)
}

// WithNames returns references with other names, or the error of a name that no object can have. Templates
// make names of labels, which a Cluster's owner writes.
func WithNames(refs []addonsv1.ValuesReference, names []string, field string) ([]addonsv1.ValuesReference, error) {
	named := slices.Clone(refs)
	for i := range named {
		if len(validation.IsDNS1123Subdomain(names[i])) > 0 {
			return nil, failure.New(job.ReasonValuesInvalid, "%s[%d].name: the template %s makes the name %s for this cluster, which no %s can have. "+
				"Correct the template, or the field that it takes the name from: a name has up to 253 lower case letters, digits, '-' and '.', "+
				"and begins and ends with a letter or digit", field, i, failure.Quote(refs[i].Name), failure.Quote(names[i]), named[i].Kind)
		}
		named[i].Name = names[i]
	}
	return named, nil
}
