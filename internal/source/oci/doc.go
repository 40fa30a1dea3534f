// SPDX-License-Identifier: Apache-2.0

// Package oci gets artifacts from OCI registries, with their tags and signatures.
package oci
