// SPDX-License-Identifier: Apache-2.0

// Package values reads and merges the values of a chart, and executes the templates that make some.
package values
