// SPDX-License-Identifier: Apache-2.0

// Package conversion converts between the versions of the API: v1beta1, which is
// the hub and is stored, and v1alpha1, a form for one chart.
//
// The flow is in addonstack.go. What a conversion does, and what users may rely
// on, is in docs/design/conversion.md.
package conversion
