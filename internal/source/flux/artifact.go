// SPDX-License-Identifier: Apache-2.0

// Package flux takes artifacts from Flux. An object of the management cluster says which artifact it has, and where its
// source-controller, or another controller, serves that.
package flux

import (
	"context"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Group is that of Flux's sources.
const Group = "source.toolkit.fluxcd.io"

// Objects reads objects, and watches their kinds from the first read on.
type Objects interface {
	Get(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error)
}

// Artifact is that which an object of Flux has.
type Artifact struct {
	objects Objects
	of      reference.Reference
}

// New returns what the reference means.
func New(r reference.Reference, objects Objects) Artifact { return Artifact{objects, r} }

// served is one artifact: its address, the digest of its archive, and its version.
type served struct{ url, digest, version string }

// Versions returns the version of the artifact that the object has now.
func (a Artifact) Versions(ctx context.Context, _ *auth.Client) ([]string, error) {
	now, err := a.now(ctx)
	if err != nil {
		return nil, err
	}
	return []string{now.version}, nil
}

// Key identifies the artifact, or why there is none.
func (a Artifact) Key(ctx context.Context) string {
	now, err := a.now(ctx)
	if err != nil {
		return err.Error()
	}
	return now.version
}

// Resolve returns the digest of the version that the reference names.
func (a Artifact) Resolve(ctx context.Context, _ *auth.Client) (string, artifact.Content, error) {
	if a.of.Chart.Flux.Revision == "" {
		return "", artifact.Content{}, failure.New(failure.ArtifactPending, "which artifact is meant isn't found yet")
	}
	now, err := a.now(ctx)
	if err == nil && now.version != a.of.Chart.Flux.Revision {
		err = gone(now)
	}
	return now.digest, artifact.Content{}, err
}

// Fetch gets the artifact, which has to have the digest.
func (a Artifact) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	now, err := a.now(ctx)
	if err == nil && now.digest != digest {
		err = gone(now)
	}
	if err != nil {
		return artifact.Content{}, err
	}
	at, err := url.Parse(now.url)
	if err != nil {
		return artifact.Content{}, failure.New(failure.ArtifactInvalid, "its status.artifact.url is no URL; see the controller that writes it")
	}
	data, err := c.File(ctx, at, "", "the artifact", c.Limits.ArchiveBytes)
	switch got := (artifact.Content{Archive: data}); {
	case err != nil:
		return artifact.Content{}, err
	case data == nil:
		return artifact.Content{}, failure.NotPublished("%s doesn't have the artifact's file; Flux makes it again", at.Host)
	case got.Digest() != digest:
		return artifact.Content{}, failure.Changed()
	default:
		return got, nil
	}
}

// gone is why an artifact that the object had can't be had any more.
func gone(now served) error {
	return failure.NotPublished("the object has artifact %s now, and Flux serves no other one; the stack's next revision has that", failure.Quote(now.version))
}

// now returns the artifact that the object has.
func (a Artifact) now(ctx context.Context) (served, error) {
	named := a.of.Chart.Flux
	if a.objects == nil {
		return served{}, failure.New(failure.SourceUnavailable, "objects of Flux can't be read here")
	}
	o, err := a.objects.Get(ctx, schema.GroupKind{Group: Group, Kind: named.Kind}, client.ObjectKey{Namespace: a.of.Namespace, Name: named.Name})
	switch {
	case meta.IsNoMatchError(err):
		return served{}, failure.NotPublished("the management cluster doesn't have the kind; install Flux's source-controller")
	case apierrors.IsNotFound(err):
		return served{}, failure.NotPublished("namespace %s has no such %s; create it, or correct flux.name", a.of.Namespace, named.Kind)
	case apierrors.IsForbidden(err):
		return served{}, failure.New(failure.SourceUnauthorized, "the provider instance may not read it; add config/flux to its overlay")
	case err != nil:
		return served{}, failure.New(failure.SourceUnavailable, "reading it: %w", err)
	}
	has, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "artifact")
	fields, _ := has.(map[string]any)
	text := func(name string) string { value, _ := fields[name].(string); return value }
	now := served{url: text("url"), digest: text("digest")}
	switch {
	case now.url == "":
		return served{}, failure.NotPublished("it has no artifact yet; see its condition Ready")
	case !artifact.IsDigest(now.digest):
		return served{}, failure.New(failure.ArtifactInvalid, "the digest of its artifact isn't one of SHA-256; see --artifact-digest-algo of Flux's controller")
	}
	now.version = versionOf(text("revision"), now.digest)
	return now, nil
}

// versionOf returns a revision with the beginning of the digest: Flux may make another artifact of a revision.
func versionOf(revision, digest string) string {
	beginning := "#" + strings.TrimPrefix(digest, "sha256:")[:12]
	return revision[:min(len(revision), versions.MaxLength-len(beginning))] + beginning
}
