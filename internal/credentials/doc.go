// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the credentials for registries and repositories: from
// the data of a Secret that an object names, or from the instance's own directory,
// which is a Secret mounted into its pod. See docs/sources/README.md for the keys.
//
// A Secret that an object names is for the one host that the object names beside
// it. The instance's own credentials serve the objects of all its namespaces, whose
// authors may name any host: so each of them is bound to a host.
package credentials
