// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// patch is one patch of an add-on, ready to be applied.
type patch struct {
	field    string // as in "patches[1]"
	selector *selector
	// One of both is set.
	strategic  []strategicPatch
	operations jsonpatch.Patch
}

// strategicPatch is a strategic merge patch.
type strategicPatch struct {
	text string
	// The object that it is for if there is no selector.
	apiVersion, kind, namespace, name string
}

// selector is a patch's target.
type selector struct {
	addonsv1.PatchTarget
	namespace, name *regexp.Regexp // nil for any
	labels          labels.Selector
}

// CheckPatch says what is wrong with a patch that can be seen without the objects.
func CheckPatch(p *addonsv1.Patch, path *field.Path) *field.Error {
	_, err := parsePatch(p, path)
	return err
}

func parsePatch(p *addonsv1.Patch, path *field.Path) (*patch, *field.Error) {
	parsed := &patch{field: path.String()}
	if p.Target != nil {
		var err *field.Error
		if parsed.selector, err = parseTarget(p.Target, path.Child("target")); err != nil {
			return nil, err
		}
	}
	invalid := func(err error) *field.Error {
		return field.Invalid(path.Child("patch"), field.OmitValueType{}, err.Error())
	}
	if err := yamllimit.Handwritten.Check([]byte(p.Patch)); err != nil {
		return nil, invalid(err)
	}
	texts := splitManifests(p.Patch)
	var first any
	if len(texts) > 0 {
		if err := yaml.Unmarshal([]byte(texts[0]), &first); err != nil {
			return nil, invalid(err)
		}
	}
	var err error
	switch first.(type) {
	case []any:
		parsed.operations, err = parseOperations(p.Patch)
		if err == nil && parsed.selector == nil {
			return nil, field.Required(path.Child("target"), "a list of JSON patch operations doesn't say which object it is for")
		}
	case map[string]any:
		parsed.strategic, err = parseStrategic(texts, parsed.selector == nil)
	default:
		err = errors.New("it is neither a strategic merge patch (a map) nor a list of JSON patch operations")
	}
	if err != nil {
		return nil, invalid(err)
	}
	return parsed, nil
}

func parseTarget(target *addonsv1.PatchTarget, path *field.Path) (*selector, *field.Error) {
	s := &selector{PatchTarget: *target}
	var err error
	if s.namespace, err = wholeMatch(target.Namespace); err != nil {
		return nil, field.Invalid(path.Child("namespace"), target.Namespace, err.Error())
	}
	if s.name, err = wholeMatch(target.Name); err != nil {
		return nil, field.Invalid(path.Child("name"), target.Name, err.Error())
	}
	if s.labels, err = labels.Parse(target.LabelSelector); err != nil {
		return nil, field.Invalid(path.Child("labelSelector"), target.LabelSelector, err.Error())
	}
	return s, nil
}

// wholeMatch compiles an expression that has to match all of a text, nil for none.
func wholeMatch(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	return regexp.Compile("^(?:" + text + ")$")
}

// parseOperations checks what the library for JSON patches would find out late, or never.
func parseOperations(text string) (jsonpatch.Patch, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(data, &operations); err != nil {
		return nil, errors.New("it is no list of JSON patch operations: each one is a map with op and path, and most with value")
	}
	if len(operations) == 0 {
		return nil, errors.New("it has no operations")
	}
	for i, o := range operations {
		op := textOf(o["op"])
		needsValue := slices.Contains([]string{"add", "replace", "test"}, op)
		needsFrom := slices.Contains([]string{"move", "copy"}, op)
		_, hasValue := o["value"] // which may be null
		switch {
		case !needsValue && !needsFrom && op != "remove":
			return nil, fmt.Errorf("operation %d: op %.20q isn't one of add, remove, replace, move, copy and test", i, op)
		case !strings.HasPrefix(textOf(o["path"]), "/"):
			return nil, fmt.Errorf("operation %d: path is missing, or doesn't start with \"/\"", i)
		case needsFrom && !strings.HasPrefix(textOf(o["from"]), "/"):
			return nil, fmt.Errorf("operation %d: from is missing, or doesn't start with \"/\"", i)
		case needsValue && !hasValue:
			return nil, fmt.Errorf("operation %d: value is missing", i)
		}
	}
	return jsonpatch.DecodePatch(data)
}

// textOf is a string in JSON, "" if it is none.
func textOf(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return ""
	}
	return text
}

// parseStrategic reads strategic merge patches. Without a selector, each has to name its object.
func parseStrategic(texts []string, named bool) ([]strategicPatch, error) {
	if len(texts) > 1 && !named {
		return nil, errors.New("a patch with a target is one document, not several")
	}
	patches := make([]strategicPatch, 0, len(texts))
	for _, text := range texts {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return nil, err
		}
		if named && (head.APIVersion == "" || head.Kind == "" || head.Metadata.Name == "") {
			return nil, errors.New("it doesn't say which object it is for: set apiVersion, kind and metadata.name in it, or target beside it")
		}
		if _, err := kyaml.Parse(text); err != nil {
			return nil, err
		}
		patches = append(patches, strategicPatch{text, head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name})
	}
	return patches, nil
}

// String names what the selector asks for.
func (s *selector) String() string {
	var parts []string
	for _, part := range [][2]string{
		{"group", s.Group}, {"version", s.Version}, {"kind", s.Kind},
		{"namespace", s.Namespace}, {"name", s.Name}, {"labelSelector", s.LabelSelector},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
		}
	}
	return strings.Join(parts, ", ")
}
