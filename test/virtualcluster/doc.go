// SPDX-License-Identifier: Apache-2.0

// Package virtualcluster gives a real API server further addresses, whose bytes it counts. Behind a virtual one is a
// cluster of its own, which shares the server with others: its namespaces and cluster-scoped objects have a prefix there.
package virtualcluster
