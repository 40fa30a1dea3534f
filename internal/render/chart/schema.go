// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	printing "golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// schemaURL is the schema's own address; only references below it can be resolved.
const schemaURL = "file:///values.schema.json"

// maxViolations are shown in one message.
const maxViolations = 10

// noLoader refuses every reference that leaves the schema. Helm's own loader fetches http
// addresses and reads files, and their content ends up in its messages.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references out of the chart's schema are not allowed: %s; set skipSchemaValidation: true, which leaves out the check of the values", url)
}

// checkSchemas checks the values of a chart and of its subcharts against their schemas.
func checkSchemas(ch *chart.Chart, values map[string]any) error {
	violations, err := schemaViolations(ch, values, "values.")
	if err != nil || len(violations) == 0 {
		return err
	}
	slices.Sort(violations)
	violations = slices.Compact(violations)
	return failure.New(job.ReasonSchemaViolation, "%s", message.List(violations, "; ", maxViolations))
}

func schemaViolations(ch *chart.Chart, values map[string]any, prefix string) ([]string, error) {
	var violations []string
	if ch.Schema != nil {
		found, err := violationsOf(ch.Schema, values, prefix)
		if err != nil {
			return nil, failure.New(job.ReasonChartInvalid, "values.schema.json of %s: %w", ch.ChartFullPath(), err)
		}
		violations = found
	}
	for _, sub := range ch.Dependencies() {
		path := prefix + sub.Name()
		switch subValues := values[sub.Name()].(type) {
		case nil:
		case map[string]any:
			found, err := schemaViolations(sub, subValues, path+".")
			if err != nil {
				return nil, err
			}
			violations = append(violations, found...)
		default:
			violations = append(violations, path+": is no map; set one")
		}
	}
	return violations, nil
}

// compiledSchemas are the schemas that a worker compiled last. The largest known one takes ten times
// its text.
var compiledSchemas = budget.NewCache[[sha256.Size]byte](nil, 1<<20, func(c compiledSchema) int64 { return c.bytes })

type compiledSchema struct {
	*jsonschema.Schema
	bytes int64 // of its text
}

func compile(schema []byte) (*jsonschema.Schema, error) {
	digest := sha256.Sum256(schema)
	if known, found := compiledSchemas.Get(digest); found {
		return known.Schema, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err == nil {
		compiledSchemas.Put(budget.Tenant{}, digest, compiledSchema{compiled, int64(len(schema))})
	}
	return compiled, err
}

func violationsOf(schema []byte, values map[string]any, prefix string) ([]string, error) {
	compiled, err := compile(schema)
	if err != nil {
		return nil, err
	}
	err = compiled.Validate(values)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return leaves(invalid, prefix), nil
	}
	return nil, err
}

// leaves are the violations proper; the inner nodes only say which keyword led to them.
func leaves(e *jsonschema.ValidationError, prefix string) []string {
	if len(e.Causes) == 0 {
		path := strings.TrimSuffix(prefix+strings.Join(e.InstanceLocation, "."), ".")
		return []string{path + ": " + describe(e.ErrorKind)}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, leaves(cause, prefix)...)
	}
	return all
}

// describe says what is wrong without the value, which may be a secret.
func describe(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("does not match the pattern %q", k.Want)
	case *kind.Format:
		return "is no valid " + k.Want
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "must be greater than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "must be a multiple of " + k.Want.RatString()
	case *kind.ContentEncoding, *kind.ContentMediaType, *kind.ContentSchema:
		return "has the wrong content"
	}
	return k.LocalizedString(printing.NewPrinter(language.English))
}
