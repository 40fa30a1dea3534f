// SPDX-License-Identifier: Apache-2.0

// Package health tells whether a workload that was ready still is. It evaluates a Deployment, StatefulSet or DaemonSet by
// its replicas, and by why a pod of it doesn't run. It evaluates any other object by its readiness checks. A state that
// comes and passes in any cluster is no finding: a rolling update, or replicas that are still added.
package health
