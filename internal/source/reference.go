// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"errors"
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// Kinds of objects that hold charts.
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// Reference says which artifact, seen from an object in Namespace.
type Reference struct {
	// Namespace that ConfigMaps and Secrets are read from, and no other.
	Namespace string
	// Chart is where it is: a path, a ConfigMap, a Secret, a registry or a
	// repository. Of what isn't a chart, too; see [KustomizationOf].
	Chart addonsv1.ChartSource
	// Kind is what it has to be.
	Kind artifact.Kind
	// Bundle that Chart.Path is in, nil if it is in the artifact root.
	Bundle *addonsv1.BundleSource

	// of is the chart that an object refers to and this is a dependency of; nil if the
	// object refers to this one.
	of *Reference
	// found is set if the digest was just found for the version, which may be a tag's that
	// was moved.
	found bool
}

// String identifies what is referred to.
func (r Reference) String() string {
	switch {
	case r.Bundle != nil:
		return fmt.Sprintf("path %q", r.Chart.Path) + r.Kind.Suffix() + " in " + BundleOf(r.Namespace, r.Bundle).String()
	case r.Chart.Path != "":
		return fmt.Sprintf("path %q", r.Chart.Path) + r.Kind.Suffix()
	case r.remote():
		return r.visit()
	}
	return r.subject() + r.Kind.Suffix()
}

// field is the one that is set.
func (r Reference) field() string {
	kind := r.Kind.Field()
	switch {
	case r.Chart.ConfigMap != nil:
		return kind + ".configMap"
	case r.Chart.Secret != nil:
		return kind + ".secret"
	case r.Chart.Path != "":
		return kind + ".path"
	case r.Chart.OCI != nil:
		return kind + ".oci"
	case r.Chart.Helm != nil:
		return kind + ".helm"
	case r.Chart.HTTP != nil:
		return kind + ".http"
	case r.Chart.GitHub != nil:
		return kind + ".github"
	}
	return kind
}

// Address says what is referred to, and where it is, for people: nothing of how to get it.
func (r Reference) Address() string { return r.subject() }

// subject is the object or path that is referred to.
func (r Reference) subject() string {
	switch {
	case r.Chart.ConfigMap != nil || r.Chart.Secret != nil:
		return r.object().String()
	case r.Bundle != nil:
		return failure.Quote(r.Chart.Path) + " of the bundle"
	case r.Chart.Path != "":
		return failure.Quote(r.Chart.Path) + " of the artifact root"
	case r.remote():
		return r.address()
	}
	return ""
}

// object is the key of the ConfigMap or Secret that is referred to.
func (r Reference) object() objectKey {
	kind, artifact := kindConfigMap, r.Chart.ConfigMap
	if artifact == nil {
		kind, artifact = kindSecret, r.Chart.Secret
	}
	key := artifact.Key
	if key == "" {
		key = addonsv1.DefaultArtifactKey
	}
	return objectKey{kind: kind, namespace: r.Namespace, name: artifact.Name, key: key}
}

// origin of the reference. A new kind of source gets its line here.
func (s *Sources) origin(ref Reference) (origin, error) {
	set := 0
	for _, isSet := range []bool{ref.Chart.Path != "", ref.Chart.ConfigMap != nil, ref.Chart.Secret != nil, ref.Chart.OCI != nil, ref.Chart.Helm != nil, ref.Chart.HTTP != nil, ref.Chart.GitHub != nil} {
		if isSet {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, failure.New(failure.ArtifactInvalid, "set exactly one of path, configMap, secret, oci, helm, http and github")
	case ref.Bundle != nil && ref.Chart.Path == "":
		return nil, failure.New(failure.ArtifactInvalid, "a bundle has artifacts by their path; set path")
	case ref.Bundle != nil:
		return bundled{s}, nil
	case ref.Chart.Path != "" && s.local == nil:
		return nil, failure.New(failure.SourceDisabled, "this provider has no artifact root; start it with --artifact-root, or use another source")
	case ref.Chart.Path != "":
		return atHand{artifactRoot{s.local}, s}, nil
	case ref.Namespace == "":
		return nil, failure.New(failure.ArtifactInvalid, "the object that refers to it has no namespace; use path")
	case ref.remote():
		return s.remote, nil
	case s.objects == nil:
		return nil, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; use another source")
	}
	return atHand{s.objects, s}, nil
}

// objectKey is a key of a ConfigMap or Secret.
type objectKey struct{ kind, namespace, name, key string }

func (k objectKey) String() string {
	return fmt.Sprintf("%s %s/%s, key %q", k.kind, k.namespace, k.name, k.key)
}

// locate says where err is, seen from the object with the reference. An error
// that isn't a [failure.Error] comes from a source that could not be asked.
func (r Reference) locate(err error) error {
	if err == nil {
		return nil
	}
	var known *failure.Error
	if !errors.As(err, &known) {
		known = &failure.Error{Reason: failure.SourceUnavailable, Err: err}
	}
	located := *known
	if located.Field == "" { // it may be remembered for others, with a field of their own
		located.Field, located.Subject = r.field()+located.Part, cmp.Or(located.Subject, r.subject())
	}
	return &located
}
