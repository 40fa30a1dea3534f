// SPDX-License-Identifier: Apache-2.0

// Package egress makes HTTP clients for hosts that the users of a namespace name:
// registries and repositories. Such a host may be hostile, and so may be the one
// who named it. A client
//
//   - reaches no address behind which are credentials of the node, or this pod,
//   - gives the caller's credentials to the one host they are for: a redirect
//     elsewhere goes without Authorization and without the client's certificate,
//     and no proxy sees that,
//   - follows few redirects, and none from TLS to plain HTTP,
//   - stays away from a host that asked to be left alone, for as long as it asked,
//   - says what went wrong in constant words, without a part of any URL but its
//     host: these may hold secrets, and messages mustn't change from one attempt to
//     the next.
//
// How long a request and its body may take is bounded by the request's context.
package egress
