// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/validate/content"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// FieldError is what is wrong with a field of an object.
type FieldError struct{ Field, Value, Fault string }

// Error implements the error interface.
func (e *FieldError) Error() string { return fmt.Sprintf("%s %.64q %s", e.Field, e.Value, e.Fault) }

// apiVersion of a kind: it becomes a part of the address where an API server is asked.
var apiVersion = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// CheckObject finds what keeps an object from being read, whatever the cluster has; nil if nothing does.
func CheckObject(o addonsv1.ConditionObject) *FieldError {
	if !apiVersion.MatchString(o.APIVersion) {
		return &FieldError{"apiVersion", o.APIVersion, "is none, as apps/v1 is"}
	}
	if faults := content.IsPathSegmentName(o.Name); len(faults) > 0 {
		return &FieldError{"name", o.Name, faults[0]}
	}
	if faults := content.IsPathSegmentName(o.Namespace); len(faults) > 0 {
		return &FieldError{"namespace", o.Namespace, faults[0]}
	}
	return nil
}
