// SPDX-License-Identifier: Apache-2.0

package values

import (
	"errors"
	"fmt"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// RenderNames executes the templates of objects' names, within a worker.
func RenderNames(req *job.Names, lim job.Limits) ([]string, error) {
	lim.OutputBytes = job.MaxNameBytes
	names := make([]string, 0, len(req.Templates))
	for i, text := range req.Templates {
		field := fmt.Sprintf("%s[%d].name", req.Field, i)
		name, err := RenderTemplate(&job.Template{Name: field, Text: text, Data: req.Data, Strict: true}, lim)
		if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == job.ReasonTemplateNotRepeatable {
			return nil, failure.New(failed.Reason, "%s calls a function that makes something else each time; take it out: "+
				"the name of an object stays the same", field)
		}
		if err != nil {
			return nil, err
		}
		names = append(names, *name)
	}
	return names, nil
}
