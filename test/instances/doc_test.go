// SPDX-License-Identifier: Apache-2.0

// Package instances tests several instances of Chandler beside each other, as they
// are installed. All objects of `kustomize build config/...` are applied to a real
// management cluster. The built binary runs as processes of its own. They have the
// arguments and the environment of the built Deployments, and the tokens of their
// ServiceAccounts. The API server says what an instance may do, by RBAC, and what
// it did, by the audit log.
//
// A world is one such management cluster; each test has its own. Workload clusters
// are shared: add-ons go to namespaces that only one world uses.
package instances
