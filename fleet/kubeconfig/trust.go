// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// Trust returns the Config of a server that the program itself chose to connect to, e.g. the one
// it runs in. Nothing is checked. Its Credentials are empty: [rest.TransportFor] adds them, and
// so follows token files and runs programs. Each rest.Config has a digest of its own, for
// functions in it can't be compared.
func Trust(config *rest.Config) (*Config, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the server: %w", err)
	}
	return &Config{
		Endpoint: Endpoint{Server: strings.TrimRight(server.String(), "/")},
		Trusted:  config,
		digest:   fmt.Sprintf("%p", config),
	}, nil
}
