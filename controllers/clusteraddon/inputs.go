// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// inputs is what an installation is made of, without the facts of the cluster.
type inputs struct {
	*addon
	chart    reference.Reference
	artifact string // digest
	version  string // of the object that the artifact is in, or its address elsewhere; "" of a path
	values   map[string]any
	secrets  []string // must not appear in a message
}

// inputs resolves the chart and the values of an add-on. What didn't change costs no request.
func (q *request) inputs(ctx context.Context, a *addon, record deliver.Summary) (*inputs, error) {
	in := &inputs{addon: a, chart: q.reference(a)}
	if err := q.resolve(ctx, in, record); err != nil {
		return nil, err
	}
	var err error
	if in.values, in.secrets, err = q.values(ctx, a); err != nil {
		return nil, err
	}
	return in, nil
}

// resolve finds the chart's digest. The record has it for the same version of an object, registry or
// repository, so that after a restart only new charts are asked for. A record without proof isn't believed.
// A digest that was rejected may have been published again.
func (q *request) resolve(ctx context.Context, in *inputs, record deliver.Summary) (err error) {
	in.version = q.Sources.Version(ctx, in.chart)
	if in.version != "" && in.version == record.ArtifactVersion && record.Artifact != "" && q.isProven(record) {
		in.artifact = record.Artifact
		if !installedAsWanted(in.addon, record) {
			in.artifact = q.Sources.Current(ctx, in.chart, in.artifact)
		}
		return nil
	}
	if in.artifact, err = q.Sources.Resolve(ctx, in.chart); err != nil {
		return ofAddon(in.addon, err)
	}
	if q.Sources.Version(ctx, in.chart) != in.version {
		in.version = "" // it changed meanwhile, and the digest may be of either
	}
	return nil
}

// values merges valuesFrom, values and valuesTemplate, each over the former. It
// also returns the strings and long numbers that came from Secrets.
func (q *request) values(ctx context.Context, a *addon) (map[string]any, []string, error) {
	var layers []map[string]any
	var secrets []string
	for i, ref := range a.ValuesFrom {
		layer, err := q.valuesFrom(ctx, ref)
		if err != nil {
			if failed, ok := errors.AsType[*failure.Error](err); ok {
				failed.Field = fmt.Sprintf("addons[%s].valuesFrom[%d]", a.Name, i)
			}
			return nil, nil, err
		}
		if ref.Kind == "Secret" {
			secrets = stringsIn(secrets, layer)
		}
		layers = append(layers, layer)
	}
	if a.Values != nil {
		layer := map[string]any{}
		if err := json.Unmarshal(a.Values.Raw, &layer); err != nil {
			return nil, nil, failure.New(render.ReasonValuesInvalid, "addons[%s].values is no map, correct it: %w", a.Name, err)
		}
		layers = append(layers, layer)
	}
	if a.ValuesTemplate != "" {
		layer, err := q.valuesTemplate(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		layers = append(layers, layer)
	}
	return render.MergeValues(layers...), secrets, nil
}

// longNumber is from where on a number may be a secret, and isn't rather a port or a count.
const longNumber = 100_000

// stringsIn appends all strings in a tree of values, and long numbers as they are written.
func stringsIn(found []string, value any) []string {
	switch value := value.(type) {
	case string:
		found = append(found, value)
	case float64:
		if value >= longNumber {
			found = append(found, strconv.FormatFloat(value, 'f', -1, 64), fmt.Sprint(value))
		}
	case map[string]any:
		for _, element := range value {
			found = stringsIn(found, element)
		}
	case []any:
		for _, element := range value {
			found = stringsIn(found, element)
		}
	}
	return found
}

func (q *request) valuesFrom(ctx context.Context, ref addonsv1.ValuesReference) (map[string]any, error) {
	o := object{kind: ref.Kind, key: q.keyOf(ref.Name)}
	key := cmp.Or(ref.Key, addonsv1.DefaultValuesKey)
	data, found, err := q.objects.data(ctx, o)
	if err != nil {
		return nil, err
	}
	text, ok := data[key]
	switch {
	case !ok && ptr.Deref(ref.Optional, false):
		return nil, nil
	case !found:
		return nil, failure.New(reasons.ValuesNotFound, "%s %s doesn't exist; create it, or set optional: true", ref.Kind, o.key)
	case !ok:
		return nil, failure.New(reasons.ValuesNotFound, "%s %s has no key %q; add it, correct key, or set optional: true",
			ref.Kind, o.key, key)
	}
	values, err := q.Renderer.Values(ctx, render.ValuesRequest{Text: text})
	if failed, ok := errors.AsType[*render.Error](err); ok {
		return nil, failure.New(failed.Reason, "%s %s, key %q: %w", ref.Kind, o.key, key, failed.Err)
	}
	return values, err
}
