// SPDX-License-Identifier: Apache-2.0

// Package job has the kinds of work that render workers do, with their inputs, results, limits and errors.
package job
