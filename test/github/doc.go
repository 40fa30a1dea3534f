// SPDX-License-Identifier: Apache-2.0

// Package github starts servers for tests that answer as GitHub's REST API does.
// Releases come in pages with Link headers, and ETags give 304s that cost no rate
// limit. There are tokens, and 404 for what isn't for everyone. Files are at another
// host, to which a request for one is redirected. The API is at /api/v3, as that of
// GitHub Enterprise Server is, and at / as well.
package github
