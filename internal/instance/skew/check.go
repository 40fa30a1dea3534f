// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/internal/message"
)

const (
	// maxDocument bounds the schema of one API version, in bytes. Chandler's has
	// less than one percent of it.
	maxDocument = 32 << 20
	// named is how many fields a message names.
	named = 3
)

// Gap is what an API server doesn't serve of a version of the API.
type Gap struct {
	Version schema.GroupVersion
	// Kinds that aren't served in this version at all.
	Kinds []string
	// Fields that the CRDs don't have, as in "AddonStack.spec.addons[].chart".
	Fields []string
}

// Empty says whether nothing is missing.
func (g Gap) Empty() bool { return len(g.Kinds) == 0 && len(g.Fields) == 0 }

// String says what is missing and what to do.
func (g Gap) String() string {
	const wayOut = "Upgrade config/shared first, which holds the CRDs"
	switch {
	case len(g.Kinds) > 0:
		return fmt.Sprintf("The API server doesn't serve %s of %s. %s", strings.Join(g.Kinds, ", "), g.Version, wayOut)
	case len(g.Fields) > 0:
		return fmt.Sprintf("The CRDs of %s don't have %s. %s", g.Version, message.List(g.Fields, ", ", named), wayOut)
	default:
		return ""
	}
}

// Check compares what an API server serves of one version with Go types, which
// are named as their kinds are.
func Check(ctx context.Context, server rest.Interface, version schema.GroupVersion, kinds ...any) (Gap, error) {
	served, err := fetch(ctx, server, version)
	if err != nil {
		return Gap{}, fmt.Errorf("reading the schema of %s: %w", version, err)
	}
	gap := Gap{Version: version}
	for _, kind := range kinds {
		known := reflect.TypeOf(kind)
		for known.Kind() == reflect.Pointer {
			known = known.Elem()
		}
		if s := find(served, version.WithKind(known.Name())); s != nil {
			gap.Fields = append(gap.Fields, Missing(s, known, known.Name())...)
		} else {
			gap.Kinds = append(gap.Kinds, known.Name())
		}
	}
	return gap, nil
}

func find(served map[string]*Schema, kind schema.GroupVersionKind) *Schema {
	for _, s := range served {
		for _, k := range s.Kinds {
			if k == kind {
				return s
			}
		}
	}
	return nil
}

// fetch returns the schemas of a version, none if it isn't served.
func fetch(ctx context.Context, server rest.Interface, version schema.GroupVersion) (map[string]*Schema, error) {
	body, err := server.Get().AbsPath("/openapi/v3/apis", version.Group, version.Version).SetHeader("Accept", "application/json").Stream(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("it is larger than %d MiB", maxDocument>>20)
	}
	var document struct {
		Components struct {
			Schemas map[string]*Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	return document.Components.Schemas, nil
}

// Serves says whether an API server serves a kind.
func Serves(ctx context.Context, server rest.Interface, kind schema.GroupVersionKind) (bool, error) {
	resources := &metav1.APIResourceList{}
	err := server.Get().AbsPath("/apis", kind.Group, kind.Version).Do(ctx).Into(resources)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the kinds of %s: %w", kind.GroupVersion(), err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
}
