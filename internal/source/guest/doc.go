// SPDX-License-Identifier: Apache-2.0

// Package guest visits other hosts with the credentials that a reference may use: those of
// the Secret that it names, or else the instance's own.
package guest
