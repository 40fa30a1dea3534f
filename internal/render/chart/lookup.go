// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// maxLookups bounds the different lookups of a chart.
const maxLookups = 1000

// lookups answers the lookups of one rendering.
type lookups struct {
	answers map[job.Lookup]map[string]any
	asked   []job.Lookup // that there is no answer for
}

func newLookups(answers []job.LookupAnswer) *lookups {
	l := &lookups{answers: make(map[job.Lookup]map[string]any, len(answers))}
	for _, a := range answers {
		l.answers[a.Lookup] = a.Object
	}
	return l
}

// find is `lookup`. An unknown object is an empty map, as for Helm without a cluster.
func (l *lookups) find(apiVersion, kind, namespace, name string) (map[string]any, error) {
	asked := job.Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	object, known := l.answers[asked]
	if !known {
		if len(l.answers) == maxLookups {
			return nil, errors.New("lookup is called for too many objects; take some calls out of the chart")
		}
		l.answers[asked] = nil
		l.asked = append(l.asked, asked)
	}
	if object == nil {
		return map[string]any{}, nil
	}
	return runtime.DeepCopyJSON(object), nil // a template may change it
}
