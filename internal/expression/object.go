// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// apiVersion of a kind: it becomes a part of the address where an API server is asked.
var apiVersion = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// CheckObject finds what keeps an object from being read, whatever the cluster has; nil if nothing does.
func CheckObject(o addonsv1.ConditionObject) *field.Error {
	if !apiVersion.MatchString(o.APIVersion) {
		return field.Invalid(field.NewPath("apiVersion"), o.APIVersion, "it is none, as apps/v1 is")
	}
	if faults := content.IsPathSegmentName(o.Name); len(faults) > 0 {
		return field.Invalid(field.NewPath("name"), o.Name, faults[0])
	}
	if faults := content.IsPathSegmentName(o.Namespace); len(faults) > 0 {
		return field.Invalid(field.NewPath("namespace"), o.Namespace, faults[0])
	}
	return nil
}
