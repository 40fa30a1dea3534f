// SPDX-License-Identifier: Apache-2.0

// Package instances tests several instances of Chandler beside each other, as they
// are installed: all objects of `kustomize build config/...` are applied to a real
// management cluster, and the built binary runs as processes of its own, with the
// arguments and the environment of the built Deployments and the tokens of their
// ServiceAccounts. What an instance may do, and what it did, the API server says:
// RBAC and the audit log.
//
// A world is one such management cluster; each test has its own. Workload clusters
// are shared: add-ons go to namespaces that only one world uses.
package instances
