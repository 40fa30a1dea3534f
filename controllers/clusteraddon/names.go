// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// writtenNames returns the names in valuesFrom as they are written. Some may be templates.
func writtenNames(refs []addonsv1.ValuesReference) []string {
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	return names
}

func isTemplate(name string) bool { return strings.Contains(name, "{{") }

// nameSources gives the sources of values the names that they have for this cluster. A failure is the add-on's.
func (q inputReader) nameSources(ctx context.Context) {
	for i := range q.wanted {
		a := &q.wanted[i]
		if written := writtenNames(a.ValuesFrom); slices.ContainsFunc(written, isTemplate) {
			a.sources, a.unnamed = q.namedSources(ctx, a, written)
		}
	}
}

// namedSources returns the add-on's sources with the names that the written ones make.
func (q inputReader) namedSources(ctx context.Context, a *addon, written []string) ([]addonsv1.ValuesReference, error) {
	field := fmt.Sprintf("addons[%s].valuesFrom", a.Name)
	data, err := q.templateData(ctx, a, field, strings.Join(written, "\n"))
	if err != nil {
		return nil, err
	}
	names, err := q.Renderer.Names(ctx, job.Names{Field: field, Templates: written, Data: data})
	if err != nil {
		return nil, err // which begins with the field
	}
	return withNames(a.ValuesFrom, names, field)
}

// withNames returns references with other names, or the error of a name that no object can have. Templates
// make names of labels, which a Cluster's owner writes.
func withNames(refs []addonsv1.ValuesReference, names []string, field string) ([]addonsv1.ValuesReference, error) {
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
