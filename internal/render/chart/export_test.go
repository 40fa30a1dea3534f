// SPDX-License-Identifier: Apache-2.0

package chart

// HelmVersion is the version that charts see.
const HelmVersion = helmVersion

// The steps of a rendering.
var (
	LoadChart    = load
	Coalesce     = coalesce
	CheckSchemas = checkSchemas
)
