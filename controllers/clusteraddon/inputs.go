// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
)

// inputs is all that an installation is made of, but for the facts of the
// cluster that the chart asks about.
type inputs struct {
	chart     source.Reference
	artifact  string // digest
	version   string // of the object that the artifact is in, "" if it is in none
	values    map[string]any
	release   deliver.Release
	readiness []addonsv1.ReadinessCheck
	secrets   []string // must not appear in a message
}

// inputError is a failure to get an add-on's inputs that its user can mend.
type inputError struct {
	reason string
	wait   bool // it may come by itself
	err    error
}

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// inputs resolves the chart and the values of an add-on. What did not change
// since the last time costs no request.
func (p *pass) inputs(ctx context.Context, a *addon, record deliver.Summary) (*inputs, error) {
	in := &inputs{
		chart:     source.Reference{Namespace: p.ca.Namespace, Chart: a.Chart},
		release:   a.release(),
		readiness: a.Readiness,
	}
	p.useChart(a)
	if err := p.resolve(ctx, in, record); err != nil {
		return nil, err
	}
	var err error
	if in.values, in.secrets, err = p.values(ctx, a); err != nil {
		return nil, err
	}
	return in, nil
}

// resolve finds the chart's digest. After a restart the record tells it, if the
// chart is in an object that is the same as then. (The record is trusted in this
// for its own cluster alone: nothing of it is remembered for others.)
func (p *pass) resolve(ctx context.Context, in *inputs, record deliver.Summary) (err error) {
	in.version = p.Sources.Version(ctx, in.chart)
	if in.version != "" && in.version == record.ArtifactVersion && record.Artifact != "" {
		in.artifact = record.Artifact
		return nil
	}
	if in.artifact, err = p.Sources.Resolve(ctx, in.chart); err != nil {
		return err
	}
	if p.Sources.Version(ctx, in.chart) != in.version {
		in.version = "" // it changed meanwhile, and the digest may be of either
	}
	return nil
}

// useChart notes where the chart is, so that a change of it comes to this cluster.
func (p *pass) useChart(a *addon) {
	switch {
	case a.Chart.ConfigMap != nil:
		p.use(object{kind: "ConfigMap", key: p.keyOf(a.Chart.ConfigMap.Name)})
	case a.Chart.Secret != nil:
		p.use(object{kind: "Secret", key: p.keyOf(a.Chart.Secret.Name)})
	default:
		p.use(object{kind: kindPath, key: client.ObjectKey{Name: path.Clean(a.Chart.Path)}})
	}
}

// values merges valuesFrom, values and valuesTemplate, each over the former. It
// also returns the strings that came from Secrets.
func (p *pass) values(ctx context.Context, a *addon) (map[string]any, []string, error) {
	var layers []map[string]any
	var secrets []string
	for i, ref := range a.ValuesFrom {
		layer, err := p.valuesFrom(ctx, ref)
		if err != nil {
			return nil, nil, prefix(err, "addons[%s].valuesFrom[%d]", a.Name, i)
		}
		if ref.Kind == "Secret" {
			secrets = stringsIn(secrets, layer)
		}
		layers = append(layers, layer)
	}
	if a.Values != nil {
		layer := map[string]any{}
		if err := json.Unmarshal(a.Values.Raw, &layer); err != nil {
			return nil, nil, &inputError{reason: ReasonValuesInvalid, err: fmt.Errorf("addons[%s].values is no map: %w", a.Name, err)}
		}
		layers = append(layers, layer)
	}
	if a.ValuesTemplate != "" {
		layer, err := p.valuesTemplate(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		layers = append(layers, layer)
	}
	return render.MergeValues(layers...), secrets, nil
}

// stringsIn appends all strings in a tree of values.
func stringsIn(found []string, value any) []string {
	switch value := value.(type) {
	case string:
		found = append(found, value)
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

func (p *pass) valuesFrom(ctx context.Context, ref addonsv1.ValuesReference) (map[string]any, error) {
	o := object{kind: ref.Kind, key: p.keyOf(ref.Name)}
	p.use(o)
	key := ref.Key
	if key == "" {
		key = addonsv1.DefaultValuesKey
	}
	data, found, err := p.objects.data(ctx, o)
	if err != nil {
		return nil, err
	}
	text, ok := data[key]
	if !found || !ok {
		if ref.Optional != nil && *ref.Optional {
			return nil, nil
		}
		missing := fmt.Sprintf("%s %s doesn't exist", ref.Kind, o.key)
		if found {
			missing = fmt.Sprintf("%s %s has no key %q", ref.Kind, o.key, key)
		}
		return nil, &inputError{reason: ReasonValuesNotFound, wait: true, err: errors.New(missing)}
	}
	values, err := render.ParseValues(text)
	if err != nil {
		return nil, &inputError{reason: ReasonValuesInvalid, err: fmt.Errorf("%s %s, key %q: %w", ref.Kind, o.key, key, err)}
	}
	return values, nil
}

// prefix puts the field in front of an inputError's message.
func prefix(err error, format string, args ...any) error {
	if in, ok := errors.AsType[*inputError](err); ok {
		return &inputError{reason: in.reason, wait: in.wait, err: fmt.Errorf(format+": %w", append(args, in.err)...)}
	}
	return err
}

// inputFailed writes the status of an add-on whose inputs can't be had. What is
// installed stays as it is, and stays Ready as long as nothing else is wanted: a
// source that is down changes nothing on a cluster.
func (p *pass) inputFailed(ctx context.Context, err error, a *addon, record deliver.Summary, status *addonsv1.AddonStatus) {
	if !isInput(err) {
		p.clusterFailed(ctx, err, status)
		return
	}
	reason, message, wait := describeInput(err, a)
	if retried(reason) {
		p.errs = append(p.errs, fmt.Errorf("add-on %s: %w", a.Name, err)) // no event will tell
	}
	away := reason == source.ReasonSourceUnavailable || reason == source.ReasonArtifactNotFound || reason == source.ReasonArtifactChanged
	if away && record.Status == deliver.StatusDeployed && record.Spec == specDigest(a) {
		status.Phase, status.Reason = addonsv1.AddonReady, reason
		status.Message = shorten("Installed; its source can't be read now: " + message)
		return
	}
	status.Phase, status.Reason, status.Message = addonsv1.AddonFailed, reason, shorten(message)
	if wait {
		status.Phase = addonsv1.AddonPending
	}
}

// isInput says whether an error is about an add-on's inputs.
func isInput(err error) bool {
	_, own := errors.AsType[*inputError](err)
	_, ofSource := errors.AsType[*source.Error](err)
	_, ofTemplate := errors.AsType[*render.Error](err)
	return own || ofSource || ofTemplate
}

// describeInput returns what is wrong with the inputs, and whether it may come
// right by itself.
func describeInput(err error, a *addon) (reason, message string, wait bool) {
	if in, ok := errors.AsType[*inputError](err); ok {
		return in.reason, err.Error(), in.wait
	}
	if in, ok := errors.AsType[*source.Error](err); ok {
		return in.Reason, fmt.Sprintf("addons[%s].%s", a.Name, err), in.Wait || in.Reason == source.ReasonSourceUnavailable
	}
	in, _ := errors.AsType[*render.Error](err)
	return in.Reason, in.Err.Error(), false
}

// retried says whether a failure may pass without an event that tells of it.
func retried(reason string) bool {
	switch reason {
	case source.ReasonSourceUnavailable, source.ReasonArtifactChanged, ReasonProviderObjectUnavailable,
		render.ReasonRenderTimeout, render.ReasonOutOfMemory:
		return true
	}
	return false
}

func (p *pass) use(o object) {
	if p.used == nil {
		p.used = sets.New[object]()
	}
	p.used.Insert(o)
	p.users.add(p.keyOf(p.ca.Name), o)
}
