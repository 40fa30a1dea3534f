// SPDX-License-Identifier: Apache-2.0

// Package chart renders Helm charts, in the steps and with the engine of Helm's install action.
package chart
