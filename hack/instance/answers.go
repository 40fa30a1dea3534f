// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// everywhere is the answer for all namespaces.
const everywhere = "*"

// maxNamespaces is the API's bound of a ProviderInstance.
const maxNamespaces = 256

// answers say all there is to say of an instance.
type answers struct {
	Name       string
	Namespaces []string // everywhere alone for all
	Filter     string
}

// validate finds what can't work. Each error is one line that says what to change.
func (a answers) validate() error {
	if problems := validation.IsDNS1123Label(a.namespace()); a.Name == "" || len(problems) > 0 {
		return fmt.Errorf("--name: %q is no name of an instance: use lower case letters, digits and -, 54 at most", a.Name)
	}
	if problems := validation.IsDNS1123Label(a.Name); len(problems) > 0 {
		return fmt.Errorf("--name: %q is no name of an instance: %s", a.Name, problems[0])
	}
	switch {
	case len(a.Namespaces) == 0:
		return errors.New("--namespaces: name one namespace or several, or * for all")
	case len(a.Namespaces) > maxNamespaces:
		return fmt.Errorf("--namespaces: %d are too many, the limit is %d", len(a.Namespaces), maxNamespaces)
	case slices.Contains(a.Namespaces, everywhere) && len(a.Namespaces) > 1:
		return errors.New("--namespaces: * is all namespaces, and can't be with others")
	}
	for i, namespace := range a.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); namespace != everywhere && len(problems) > 0 {
			return fmt.Errorf("--namespaces: %q is no name of a namespace: %s", namespace, problems[0])
		}
		if slices.Contains(a.Namespaces[:i], namespace) {
			return fmt.Errorf("--namespaces: %q is there twice", namespace)
		}
	}
	if problems := validation.IsValidLabelValue(a.Filter); len(problems) > 0 {
		return fmt.Errorf("--filter: %q is no value of a label: %s", a.Filter, problems[0])
	}
	if a.Filter == addonsv1.SharedWatchFilter {
		return fmt.Errorf("--filter: %q is for AddonStacks that all instances look after; take another", a.Filter)
	}
	return nil
}

// namespace that the instance runs in.
func (a answers) namespace() string { return "chandler-" + a.Name }

func (a answers) everywhere() bool { return slices.Equal(a.Namespaces, []string{everywhere}) }

// split reads a list with commas between.
func split(list string) []string {
	if trim(list) == "" {
		return nil
	}
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = trim(parts[i])
	}
	return parts
}

func trim(s string) string { return strings.TrimSpace(s) }
