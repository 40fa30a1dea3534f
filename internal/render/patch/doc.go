// SPDX-License-Identifier: Apache-2.0

// Package patch applies the patches of an add-on to its objects, as kustomize does.
package patch
