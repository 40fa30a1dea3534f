// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"path"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// inputs is all that an installation is made of, but for the facts of the
// cluster that the chart asks about.
type inputs struct {
	chart    reference.Reference
	artifact string // digest
	version  string // of the object that the artifact is in, or its address elsewhere; "" of a path
	values   map[string]any
	release  deliver.Release
	// directory of what isn't a chart; "" for the root.
	directory string
	patches   []addonsv1.Patch
	// templateName of the release, "" if it is that of the release.
	templateName string
	readiness    []addonsv1.ReadinessCheck
	skipSchema   bool     // changes no object: it isn't part of the digest
	secrets      []string // must not appear in a message
}

// inputs resolves the chart and the values of an add-on. What did not change
// since the last time costs no request.
func (p *pass) inputs(ctx context.Context, a *addon, record deliver.Summary) (*inputs, error) {
	in := &inputs{
		chart:        p.reference(a),
		release:      a.release(),
		directory:    a.directory(),
		patches:      a.Patches,
		templateName: a.TemplateReleaseName,
		readiness:    a.Readiness,
		skipSchema:   ptr.Deref(a.SkipSchemaValidation, false),
	}
	p.useChart(a)
	if err := p.resolve(ctx, a, in, record); err != nil {
		return nil, err
	}
	var err error
	if in.values, in.secrets, err = p.values(ctx, a); err != nil {
		return nil, err
	}
	return in, nil
}

// resolve finds the chart's digest. After a restart the record tells it, if the
// chart is in an object that is the same as then, or is the same version of a
// registry or repository: so a source is asked only about what is new. (The record is trusted in this
// for its own cluster alone: nothing of it is remembered for others.) If that was refused,
// it may have been published anew; what is installed as it is wanted is left alone.
func (p *pass) resolve(ctx context.Context, a *addon, in *inputs, record deliver.Summary) (err error) {
	in.version = p.Sources.Version(ctx, in.chart)
	if in.version != "" && in.version == record.ArtifactVersion && record.Artifact != "" {
		in.artifact = record.Artifact
		if !installedAsWanted(a, record) {
			in.artifact = p.Sources.Current(ctx, in.chart, in.artifact)
		}
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
	ref := p.reference(a)
	if ref.Bundle == nil {
		p.useSource(ref.Chart)
		return
	}
	p.useTrust(ref.Chart.Verify)
	p.useSource(reference.BundleOf(p.ca.Namespace, ref.Bundle).Chart)
}

// useSource notes an address, and what it takes to fetch from there.
func (p *pass) useSource(at addonsv1.ChartSource) {
	p.useTrust(at.Verify)
	switch {
	case at.ConfigMap != nil:
		p.use(object{kind: "ConfigMap", key: p.keyOf(at.ConfigMap.Name)})
	case at.Secret != nil:
		p.use(object{kind: "Secret", key: p.keyOf(at.Secret.Name)})
	case at.OCI != nil:
		p.useCredentials(at.OCI.SecretRef)
	case at.Helm != nil:
		p.useCredentials(at.Helm.SecretRef)
	case at.HTTP != nil:
		p.useCredentials(at.HTTP.SecretRef)
	case at.GitHub != nil:
		p.useCredentials(at.GitHub.SecretRef)
	default:
		p.use(object{kind: kindPath, key: client.ObjectKey{Name: path.Clean(at.Path)}})
	}
}

// useTrust notes the keys that signatures are verified with, so that other ones are
// tried at once.
func (p *pass) useTrust(verify *addonsv1.Verification) {
	for _, trusted := range verify.References() {
		p.use(object{kind: trusted.Kind, key: p.keyOf(trusted.Name)})
	}
}

// useCredentials notes the Secret, so that other credentials are tried at once.
func (p *pass) useCredentials(secret *addonsv1.CredentialsReference) {
	if secret != nil {
		p.use(object{kind: "Secret", key: p.keyOf(secret.Name)})
	}
}

func (p *pass) use(o object) {
	if p.used == nil {
		p.used = sets.New[object]()
	}
	p.used.Insert(o)
	p.users.add(p.keyOf(p.ca.Name), o)
}
