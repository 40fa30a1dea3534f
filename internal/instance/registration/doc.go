// SPDX-License-Identifier: Apache-2.0

// Package registration keeps the ProviderInstance of a running instance, and lets
// its controllers run only while that object holds the instance's scope.
//
// A round asks what has to be so before the instance may claim (access.go,
// compatible.go), takes its object (object.go), and claims (claim.go). Rounds
// follow one another until the claim is Active. Then the controllers run beside a
// heartbeat (running.go), and when they have ended, the object goes (leave.go).
//
// Other instances wait until a silent one has expired. So the process ends when it
// couldn't write for two thirds of that time, counted from before it sent its last
// successful write: see lifetime in lifetime.go, and docs/design/instances.md.
package registration
