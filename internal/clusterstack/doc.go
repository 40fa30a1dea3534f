// SPDX-License-Identifier: Apache-2.0

// Package clusterstack reads releases of Cluster Stacks as they are published.
// They are the bundles of the Cluster Stack Operator
// (github.com/SovereignCloudStack/cluster-stack-operator). It reads names of
// releases ([ParseTag]), metadata.yaml ([ParseMetadata]), and the stages in
// clusteraddon.yaml ([ParseStages]).
//
// It decides nothing about clusters, and reads no files: callers hand it content.
// All content is hostile. Keys that aren't known are tolerated and reported, as
// releases are made for newer operators, too.
package clusterstack
