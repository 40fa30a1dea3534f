// SPDX-License-Identifier: Apache-2.0

// Package files makes objects of files that are no chart: of a kustomization, or of plain manifests.
package files
