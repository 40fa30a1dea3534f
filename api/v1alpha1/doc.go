// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Chandler's API, group addons.cluster.x-k8s.io, in a
// form for one chart, close to what users of the Helm add-on provider write.
//
// It is served beside v1beta1, the hub and storage version, and converted
// without loss: what this version can't hold is kept in an annotation.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1alpha1
