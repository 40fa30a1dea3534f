// SPDX-License-Identifier: Apache-2.0

// Package redacted shows what is installed of an add-on, by its release record. Strings that came from Secrets, and those
// that the chart generated, are hidden.
package redacted

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
)

// Release is the newest record of an add-on in its workload cluster.
type Release struct{ record *record.Record }

// Read reads the release of a name in a namespace of the workload cluster. It is an error if Chandler wrote none.
func Read(ctx context.Context, c client.Client, namespace, name string) (*Release, error) {
	store := record.Store{Client: c, Release: record.Release{Namespace: namespace, Name: name}}
	r, err := store.Newest(ctx)
	if err == nil && r == nil {
		err = fmt.Errorf("the cluster has no release %s that Chandler wrote", store.Release)
	}
	return &Release{r}, err
}

// Values returns the values as YAML.
func (r *Release) Values() (string, error) {
	secrets := r.secrets()
	text, err := yaml.Marshal(message.RedactIn(r.record.Helm.Config, secrets))
	return message.Redact(string(text), secrets), err
}

// Revision returns the stack of the add-on, and the stack's revision that it was installed by.
func (r *Release) Revision() (stack, revision string) { return r.record.Stack, r.record.StackRevision }

// Origins returns where the values are from, as [values.OriginsOf] does.
func (r *Release) Origins(layers []values.Layer) []values.Origin {
	defaults := values.Layer{From: "chart " + r.record.Chart + " " + r.record.Version}
	if chart := r.record.Helm.Chart; chart != nil {
		defaults.Values = chart.Values
	}
	all, secrets := values.OriginsOf(defaults, r.record.Helm.Config, layers), r.secrets()
	for i := range all {
		is := &all[i]
		for path, value := range message.RedactIn(map[string]any{is.Path: is.Value}, secrets) {
			is.Path, is.Value = path, value
		}
		if text, err := json.Marshal(is.Value); err != nil || message.Redact(string(text), secrets) != string(text) { // a number
			is.Value = message.Redacted
		}
	}
	return all
}

// Manifest returns the objects as YAML, hooks last. The contents of Secrets are hidden, wherever they are.
func (r *Release) Manifest() (string, error) {
	objects, err := r.record.Manifest()
	if err != nil {
		return "", err
	}
	for _, hook := range r.record.Helm.Hooks {
		more, err := record.ParseManifest(hook.Manifest)
		if err != nil {
			return "", fmt.Errorf("hook %s: %w", hook.Path, err)
		}
		objects = append(objects, more...)
	}
	secrets := r.secrets()
	for _, o := range objects {
		if o.GetKind() == "Secret" {
			hideFields(o)
		}
		o.Object = message.RedactIn(o.Object, secrets)
	}
	text, err := record.FormatManifest(objects)
	return message.Redact(text, secrets), err
}

// Notes returns the notes of the chart.
func (r *Release) Notes() (string, error) {
	return message.Redact(r.record.Helm.Info.Notes, r.secrets()), nil
}

// hideFields replaces the contents of a Secret. Their keys stay.
func hideFields(secret *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		entries, _, _ := unstructured.NestedMap(secret.Object, field)
		for key := range entries {
			_ = unstructured.SetNestedField(secret.Object, message.Redacted, field, key) // it is a map
		}
	}
}

// secrets returns strings that came from Secrets, or are in Secrets of the manifest, or that the chart generated.
func (r *Release) secrets() []string {
	all := slices.Concat(r.record.State.Sensitive, r.record.State.PreviousSensitive, job.Generated(r.record.State.Generated).Secrets())
	for _, o := range r.record.Secrets() {
		all = append(all, job.SecretsIn(o.Object)...)
	}
	return all
}
