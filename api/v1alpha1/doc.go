// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the older version of Chandler's API, group addons.cluster.x-k8s.io. Its
// types have the fields of v1beta1, a few under other names, and use those of v1beta1 that are the same.
//
// It is served beside v1beta1, the hub and storage version, and is converted
// without loss: an annotation keeps the fields that this version lacks.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1alpha1
