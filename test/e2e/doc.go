// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Chandler as a user meets it: the manager's binary as a
// process of its own, against real API servers. It is evaluated by what is in the
// clusters, what the conditions say, and what the audit logs show.
//
//	go test ./test/e2e
//
// Without -short it starts a management cluster and up to three workload
// clusters. Environment:
//
//   - CHANDLER_TEST_DATA: real charts and releases, see test/realdata. Tests with
//     these are skipped where it is absent.
//   - CHANDLER_E2E_BINARY: the manager to test; by default it is built.
//   - CHANDLER_E2E_RACE=1: build the manager with the race detector.
//   - CHANDLER_E2E_EVERY_WRITE=1: let the manager die at each single write,
//     instead of every fifth (make test-long).
//   - CHANDLER_E2E_CLUSTERS=20: hold removals from that many clusters, each with an API
//     server of its own (make test-long).
//   - CHANDLER_RESTORES=200: restore the management cluster that often (make test-long);
//     CHANDLER_RANDOM_SEED repeats a run.
//   - CHANDLER_E2E_INSTALLS=50: install a chart with Jobs that often, while all cores are
//     busy (make test-long).
//   - CHANDLER_E2E_HOSTILE=1m: look at hostile clusters for that long, and at the times
//     that others take beside slow ones (make test-hostile).
//   - CHANDLER_E2E_LOGS: folder that keeps the logs of the managers.
package e2e
