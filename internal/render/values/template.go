// SPDX-License-Identifier: Apache-2.0

package values

import (
	"errors"
	"maps"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
)

// noValue is the text that text/template writes for a field that is not there.
const noValue = "<no value>"

// RenderTemplate executes a values template, within a worker.
func RenderTemplate(req *job.Template, lim job.Limits) (*string, error) {
	generator := keptvalues.NewGenerator(nil, lim.GeneratedBytes)
	out := &cappedBuilder{room: lim.OutputBytes}
	err := executeTemplate(req, templateFuncs(generator), out)
	full := generator.Err()
	switch {
	case full != nil:
		return nil, full
	case errors.Is(err, errOutputTooLarge):
		return nil, failure.New(job.ReasonOutputTooLarge, "%s: wrote more than %d bytes; make it smaller", req.Name, lim.OutputBytes)
	case err != nil:
		return nil, failure.New(job.ReasonValuesTemplateFailed, "%w; correct the template, or set on the Cluster what it asks for", err)
	case !generator.IsRepeatable():
		// Each restart, and each change of the Cluster, would make other values, and so a new revision.
		return nil, failure.New(job.ReasonTemplateNotRepeatable,
			"%s calls a function that makes something else each time (a random string, a key, the time); keep the value in a Secret, and name that in valuesFrom", req.Name)
	}
	text := out.String()
	return &text, nil
}

// maxParsedActions is how many actions a template may have to be parsed outside of a worker. Each
// may be within the one before, and take some stack.
const maxParsedActions = 5000

// CheckTemplate returns the error in a values template that can be seen without data. A
// template with very many actions isn't looked at.
func CheckTemplate(text string) error {
	if strings.Count(text, "{{") > maxParsedActions {
		return nil
	}
	_, err := template.New("line").Funcs(templateFuncs(keptvalues.NewGenerator(nil, 0))).Parse(text)
	return trimPrefix(err)
}

// templateFuncs are the functions of the Cluster API Add-on Provider for Helm.
func templateFuncs(generator *keptvalues.Generator) template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(funcs, name)
	}
	maps.Copy(funcs, generator.Funcs())
	return funcs
}

func executeTemplate(req *job.Template, funcs template.FuncMap, out *cappedBuilder) error {
	t := template.New(req.Name).Funcs(funcs)
	if req.Strict {
		t.Option("missingkey=error").Funcs(template.FuncMap{strictFunc: strictValue})
	}
	t, err := t.Parse(req.Text)
	if err != nil {
		return trimPrefix(err)
	}
	if req.Strict {
		demandValues(t)
	}
	data := req.Data
	if data == nil {
		data = map[string]any{}
	}
	err = t.Execute(out, data)
	var missing *missingValueError
	if errors.As(err, &missing) {
		return missing
	}
	return trimPrefix(err)
}

// trimPrefix cuts the word that starts all messages of text/template, before the template's name.
func trimPrefix(err error) error {
	if err == nil || errors.Is(err, errOutputTooLarge) {
		return err
	}
	return errors.New(strings.TrimPrefix(err.Error(), "template: "))
}

var errOutputTooLarge = errors.New("output is too large")

// cappedBuilder ends an execution that writes too much.
type cappedBuilder struct {
	strings.Builder
	room int64
}

func (b *cappedBuilder) Write(data []byte) (int, error) {
	if b.room -= int64(len(data)); b.room < 0 {
		return 0, errOutputTooLarge
	}
	return b.Builder.Write(data)
}
