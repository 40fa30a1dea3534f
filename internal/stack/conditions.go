// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// validateConditions compiles preconditions and postconditions, and looks whether their
// objects could be read.
func validateConditions(addon *addonsv1.Addon, path *field.Path) []Problem {
	problems := validateEach(addon.Preconditions, path.Child("preconditions"))
	return append(problems, validateEach(addon.Postconditions, path.Child("postconditions"))...)
}

func validateEach(all []addonsv1.ObjectsCondition, path *field.Path) []Problem {
	var problems []Problem
	for i := range all {
		for j, object := range all[i].Objects {
			if wrong := expression.CheckObject(object); wrong != nil {
				problems = append(problems, Problem{addonsv1.InvalidExpressionReason,
					field.Invalid(path.Index(i).Child("objects").Index(j).Child(wrong.Field), wrong.Value, wrong.Fault)})
			}
		}
		if _, err := expression.Of(&all[i]); err != nil {
			problems = append(problems, Problem{addonsv1.InvalidExpressionReason,
				field.Invalid(path.Index(i).Child("expression"), all[i].Expression, err.Error())})
		}
	}
	return problems
}
