// SPDX-License-Identifier: Apache-2.0

// Package github starts servers for tests that answer as GitHub's REST API does:
// releases in pages with Link headers, ETags and 304s that cost no rate limit, tokens,
// 404 for what isn't for everyone, and files that are at another host, to which a
// request for one is redirected. The API is at /api/v3, as that of GitHub Enterprise
// Server is, and at / as well.
package github
