// SPDX-License-Identifier: Apache-2.0

// Package registry starts real OCI registries for tests: CNCF Distribution, from
// the module in hack/registry, which is built once and kept in the user's cache.
package registry
