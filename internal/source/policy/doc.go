// SPDX-License-Identifier: Apache-2.0

// Package policy says whom a reference trusts to sign what it means.
package policy
