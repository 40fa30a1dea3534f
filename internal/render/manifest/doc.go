// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the objects and hooks in YAML documents, checks them, and puts them in Helm's order.
package manifest
