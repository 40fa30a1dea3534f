// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// patch is one document of an add-on's patch. It has operations, or else a document to merge.
type patch struct {
	field      string // as in "patches[1]"
	target     addonsv1.PatchTarget
	named      bool // says that the document names its one object, and target is that
	namespaces *types.SelectorRegex
	names      *types.SelectorRegex
	labels     labels.Selector
	operations jsonpatch.Patch
	document   *kyaml.RNode
}

// Check returns the error in a patch that can be seen without the objects. Aliases may
// make much of little: a patch that may have some is looked at by a worker alone.
func Check(p *addonsv1.Patch, path *field.Path) *field.Error {
	if strings.Contains(p.Patch, "&") && strings.Contains(p.Patch, "*") {
		return nil
	}
	_, err := parse(p, path)
	return err
}

func parse(p *addonsv1.Patch, path *field.Path) ([]patch, *field.Error) {
	invalid := func(err error) *field.Error {
		return field.Invalid(path.Child("patch"), field.OmitValueType{}, err.Error())
	}
	documents, err := readPatch(p.Patch)
	if err == nil && len(documents) > 1 && p.Target != nil {
		err = errors.New("a patch with a target is one document, not several")
	}
	if err != nil {
		return nil, invalid(err)
	}
	var patches []patch
	for _, document := range documents {
		parsed := patch{field: path.String(), named: p.Target == nil, document: document}
		if !parsed.named {
			parsed.target = *p.Target
		}
		switch kind := document.YNode().Kind; {
		case kind == kyaml.SequenceNode && parsed.named:
			return nil, field.Required(path.Child("target"), "a list of JSON patch operations doesn't say which object it is for")
		case kind == kyaml.SequenceNode:
			parsed.operations, err = parseOperations(p.Patch)
		case kind != kyaml.MappingNode:
			err = errNoPatch
		case parsed.named:
			parsed.target, err = namedIn(document)
		}
		if err != nil {
			return nil, invalid(err)
		}
		if err := parsed.parseTarget(path.Child("target")); err != nil {
			return nil, err
		}
		patches = append(patches, parsed)
	}
	return patches, nil
}

// parseTarget reads the expressions of the target.
func (p *patch) parseTarget(path *field.Path) *field.Error {
	invalid := func(part, text string, err error) *field.Error {
		return field.Invalid(path.Child(part), text, err.Error())
	}
	var err error
	if p.namespaces, err = types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{Namespace: p.target.Namespace}}); err != nil {
		return invalid("namespace", p.target.Namespace, err)
	}
	if p.names, err = types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{Name: p.target.Name}}); err != nil {
		return invalid("name", p.target.Name, err)
	}
	if p.labels, err = labels.Parse(p.target.LabelSelector); err != nil {
		return invalid("labelSelector", p.target.LabelSelector, err)
	}
	return nil
}

var errNoPatch = errors.New("it is neither a strategic merge patch (a map) nor a list of JSON patch operations")

// readPatch reads the documents of a patch.
func readPatch(text string) ([]*kyaml.RNode, error) {
	if err := strictyaml.CheckSingles([]byte(text)); err != nil {
		return nil, err
	}
	documents, err := kio.FromBytes([]byte(text))
	if err == nil && len(documents) == 0 {
		err = errNoPatch
	}
	return documents, err
}

// namedIn is the object that a strategic merge patch names.
func namedIn(document *kyaml.RNode) (addonsv1.PatchTarget, error) {
	var head struct {
		kyaml.TypeMeta `yaml:",inline"`
		Metadata       kyaml.NameMeta `yaml:"metadata"`
	}
	err := document.YNode().Decode(&head)
	gv, invalid := schema.ParseGroupVersion(head.APIVersion)
	if err != nil || invalid != nil || gv.Version == "" || head.Kind == "" || head.Metadata.Name == "" {
		return addonsv1.PatchTarget{}, errors.New("it doesn't say which object it is for: set apiVersion, kind and metadata.name in it, or target beside it")
	}
	return addonsv1.PatchTarget{
		Group: gv.Group, Version: gv.Version, Kind: head.Kind,
		Namespace: regexp.QuoteMeta(head.Metadata.Namespace), Name: regexp.QuoteMeta(head.Metadata.Name),
	}, nil
}

// operationFields are the fields that operations need, besides op.
var operationFields = map[string][]string{
	"add": {"path", "value"}, "replace": {"path", "value"}, "test": {"path", "value"},
	"move": {"path", "from"}, "copy": {"path", "from"}, "remove": {"path"},
}

// parseOperations finds errors that the library for JSON patches would find late, or never.
func parseOperations(text string) (jsonpatch.Patch, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil || len(operations) == 0 {
		return nil, errors.New("it has no operations: each one is a map with op and path, and most with value")
	}
	for i, o := range operations {
		fields, known := operationFields[o.Kind()]
		if !known {
			return nil, fmt.Errorf("operation %d: op %.20q isn't one of add, remove, replace, move, copy and test", i, o.Kind())
		}
		for _, name := range fields {
			value, has := o[name] // null is a value
			if !has || name != "value" && (value == nil || !bytes.HasPrefix(*value, []byte(`"/`))) {
				return nil, fmt.Errorf("operation %d: %s is missing, or doesn't start with \"/\"", i, name)
			}
		}
	}
	return operations, nil
}

// String shows the target as it is in an add-on.
func (p *patch) String() string {
	text, _ := json.Marshal(p.target) // strings can't fail
	return string(text)
}
