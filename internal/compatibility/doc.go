// SPDX-License-Identifier: Apache-2.0

// Package compatibility decides for which versions of Kubernetes add-ons are: by ranges that
// users write, by rows of chart.versions, and by kubeVersion of a Chart.yaml.
package compatibility
