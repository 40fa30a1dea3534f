// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Lookup is what a template asks `lookup` for.
type Lookup struct {
	// Name is empty for all objects of the kind, Namespace for those of all namespaces.
	APIVersion, Kind, Namespace, Name string
}

// LookupAnswer is the answer to one Lookup.
type LookupAnswer struct {
	Lookup
	// Object is a list if Name is empty, and nil if nothing was found.
	Object map[string]any
}

// maxLookups bounds the different lookups of a chart.
const maxLookups = 1000

// maxLookupRounds bounds how often the answers to a chart's lookups may lead it to further ones.
const maxLookupRounds = 4

// lookups answers those of one rendering.
type lookups struct {
	answers map[Lookup]map[string]any
	asked   []Lookup // that there is no answer for
}

func newLookups(answers []LookupAnswer) *lookups {
	l := &lookups{answers: make(map[Lookup]map[string]any, len(answers))}
	for _, a := range answers {
		l.answers[a.Lookup] = a.Object
	}
	return l
}

// find is `lookup`. What isn't known is an empty map, as for Helm without a cluster.
func (l *lookups) find(apiVersion, kind, namespace, name string) (map[string]any, error) {
	asked := Lookup{apiVersion, kind, namespace, name}
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

// lookUp renders a chart until all its lookups are answered, as far as they may be. A chart that fails may do
// so because a lookup found nothing.
func (r *Renderer) lookUp(ctx context.Context, req *ChartRequest) (*Result, error) {
	for range maxLookupRounds {
		resp, err := r.do(ctx, &request{Chart: req})
		if resp == nil || req.Lookup == nil || len(resp.Asked) == 0 {
			return resultOf(resp, err)
		}
		answers, failed := req.Lookup(ctx, resp.Asked)
		if failed != nil {
			return nil, failed
		}
		if !slices.ContainsFunc(answers, func(a LookupAnswer) bool { return a.Object != nil }) {
			return resultOf(resp, err)
		}
		req.Answers = append(req.Answers, answers...)
		for _, a := range answers {
			req.Sensitive = append(slices.Clip(req.Sensitive), SecretsIn(a.Object)...)
		}
	}
	return nil, failf(ReasonTemplateFailed, "what lookup finds leads to other lookups more than %d times; take some calls out of the chart", maxLookupRounds)
}

func resultOf(resp *response, err error) (*Result, error) {
	switch {
	case err != nil:
		return nil, err
	case resp.Result == nil:
		return nil, errProtocol
	}
	return resp.Result, nil
}

// SecretsIn are the values in an object or a list, if it is of Secrets.
func SecretsIn(object map[string]any) []string {
	var all []string
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			if item, ok := item.(map[string]any); ok {
				all = append(all, SecretsIn(item)...)
			}
		}
	}
	if object["kind"] != "Secret" {
		return all
	}
	data, _ := object["data"].(map[string]any)
	for _, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			all = append(all, string(plain))
		}
	}
	data, _ = object["stringData"].(map[string]any) // of one that was rendered
	for _, value := range data {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
