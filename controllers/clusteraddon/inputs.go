// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// inputs is what an installation is made of, without the facts of the cluster.
type inputs struct {
	*wanted.Addon
	chart    reference.Reference
	artifact string // digest
	version  string // of the object that the artifact is in, or its address elsewhere; "" of a path
	values   map[string]any
	optional string   // see [deliver.Terms]
	secrets  []string // must not appear in a message
	recorded bool     // a release record has what the values were, and nothing else here is known
}

// inputReader reads what add-ons are made of: charts, values, and what these refer to.
type inputReader struct{ *clusterRun }

// inputs resolves the chart and the values of an add-on. An unchanged input costs no request.
func (q inputReader) inputs(ctx context.Context, a *wanted.Addon, record deliver.Summary) (*inputs, error) {
	in := &inputs{Addon: a, chart: q.reference(a)}
	if err := q.resolve(ctx, in, record); err != nil {
		return nil, err
	}
	return in, q.readValues(ctx, in, record)
}

// resolve finds the chart's digest. The record has it for the same version of an object, registry or
// repository, so that after a restart only new charts are asked for. A record without proof isn't believed.
// A digest that was refused may have been published again.
func (q inputReader) resolve(ctx context.Context, in *inputs, record deliver.Summary) (err error) {
	in.version = q.Sources.Version(ctx, in.chart)
	if in.version != "" && in.version == record.ArtifactVersion && record.Artifact != "" && q.proofs.Prove(record) {
		in.artifact = record.Artifact
		if !in.Addon.IsInstalledAs(record) {
			in.artifact = q.Sources.Current(ctx, in.chart, in.artifact)
		}
		return nil
	}
	if in.artifact, err = q.Sources.Resolve(ctx, in.chart); err != nil {
		return ofAddon(in.Addon, err)
	}
	if q.Sources.Version(ctx, in.chart) != in.version {
		in.version = "" // it changed meanwhile, and the digest may be of either
	}
	return nil
}

// readValues merges valuesFrom, values and valuesTemplate, each over the previous. It also notes the strings and
// long numbers that came from Secrets.
func (q inputReader) readValues(ctx context.Context, in *inputs, record deliver.Summary) error {
	var optional []string
	a := in.Addon
	in.values = map[string]any{}
	merge := func(layer map[string]any) (err error) {
		if in.values, err = values.MergeWithin(in.values, layer); err != nil {
			err = failure.New(job.ReasonValuesInvalid, "addons[%s]: the values of all its sources, merged, are %w; "+
				"take out what the chart doesn't need, or split the add-on", a.Name, err)
		}
		return err
	}
	if a.Unnamed != nil {
		return a.Unnamed
	}
	for i, ref := range a.Sources {
		layer, found, err := q.valuesFrom(ctx, ref)
		if err == nil && !found && hadValues(record, a, ref) && !q.goesOnWithout(a, ref) {
			err = failure.New(reasons.ValuesNotFound, "%s %s, key %q, was there when the add-on was installed, and is gone; the add-on stays as it is. "+
				"Create it again. To go on without it, take it out of valuesFrom, or annotate ClusterAddon %s with %s",
				ref.Kind, q.keyOf(ref.Name), stack.ValuesKey(ref), q.ca.Name, addonsv1.ReconcileNowAnnotation)
		}
		if err != nil {
			if failed, ok := errors.AsType[*failure.Error](err); ok {
				failed.Field = fmt.Sprintf("addons[%s].valuesFrom[%d]", a.Name, i)
			}
			return err
		}
		if ptr.Deref(ref.Optional, false) && found {
			q.memory.of(a.Release()).agreed.Delete(stack.ValuesName(ref))
			optional = append(optional, stack.ValuesName(ref))
		}
		if ref.Kind == "Secret" {
			in.secrets = stringsIn(in.secrets, layer)
		}
		if err := merge(layer); err != nil {
			return err
		}
	}
	if a.Values != nil {
		layer := map[string]any{}
		if err := json.Unmarshal(a.Values.Raw, &layer); err != nil {
			return failure.New(job.ReasonValuesInvalid, "addons[%s].values is no map, correct it: %w", a.Name, err)
		}
		if err := merge(layer); err != nil {
			return err
		}
	}
	if a.ValuesTemplate != "" {
		layer, err := q.valuesTemplate(ctx, a)
		if err != nil {
			return err
		}
		if err := merge(layer); err != nil {
			return err
		}
	}
	in.optional = strings.Join(optional, ",")
	return nil
}

// hadValues reports whether an optional source of values was there when an add-on was installed by the same spec. A
// move or a restore may have left it behind.
func hadValues(record deliver.Summary, a *wanted.Addon, ref addonsv1.ValuesReference) bool {
	return record.Spec == a.SpecDigest() && slices.Contains(strings.Split(record.Optional, ","), stack.ValuesName(ref))
}

// goesOnWithout reports whether somebody agreed that an add-on continues without a source of values: by reconcile-now.
func (q inputReader) goesOnWithout(a *wanted.Addon, ref addonsv1.ValuesReference) bool {
	agreed, name := q.memory.of(a.Release()).agreed, stack.ValuesName(ref)
	if q.again {
		agreed.Insert(name)
	}
	return agreed.Has(name)
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

// valuesFrom returns the values of a source; false if that is optional, and isn't there.
func (q inputReader) valuesFrom(ctx context.Context, ref addonsv1.ValuesReference) (values map[string]any, ok bool, err error) {
	named := valuesource.Named(q.ca.Namespace, ref)
	is, err := q.Values.Value(ctx, named)
	if err != nil {
		return nil, false, err
	}
	object := q.keyOf(ref.Name)
	switch {
	case !is.IsThere && ptr.Deref(ref.Optional, false):
		return nil, false, nil
	case !is.HasObject:
		return nil, false, failure.New(reasons.ValuesNotFound, "%s %s doesn't exist; create it, or set optional: true", ref.Kind, object)
	case !is.IsThere:
		return nil, false, failure.New(reasons.ValuesNotFound, "%s %s has no key %q; add it, correct key, or set optional: true",
			ref.Kind, object, named.Key)
	}
	values, err = q.Renderer.Values(ctx, job.Values{Text: is.Text})
	return values, err == nil, failure.Within(fmt.Sprintf("%s %s, key %q", ref.Kind, object, named.Key), err)
}
