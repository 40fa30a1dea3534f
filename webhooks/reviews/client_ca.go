// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"crypto/tls"
	"fmt"

	"k8s.io/client-go/util/cert"
)

// ClientCA returns what has a server ask for a certificate by an authority in the file.
// A handshake without one succeeds: conversion has to.
func ClientCA(file string) (func(*tls.Config), error) {
	pool, err := cert.NewPool(file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	return func(c *tls.Config) { c.ClientCAs, c.ClientAuth = pool, tls.VerifyClientCertIfGiven }, nil
}
