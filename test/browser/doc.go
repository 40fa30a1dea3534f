// SPDX-License-Identifier: Apache-2.0

// Package browser looks at the page of `kubectl chandler ui` with Chromium, over a real API server with 1,000 clusters. It is a module of
// its own, so that the product's doesn't have the browser's driver.
package browser
