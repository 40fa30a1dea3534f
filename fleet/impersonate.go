// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// As returns a client that acts as a user, such as "system:serviceaccount:namespace:name", whose
// groups the API server knows. Otherwise it is as [Connection.Client]: it shares the transport,
// the limits and the knowledge of kinds, and ends with the connection. As sends no request: that
// the kubeconfig's user may not impersonate is the answer to the first one.
func (c *Connection) As(user string) (client.Client, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	requests, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the HTTP client of user %s: %w", user, err)
	}
	actor, err := client.New(config, client.Options{HTTPClient: requests, Scheme: c.GetScheme(), Mapper: c.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of user %s: %w", user, err)
	}
	return actor, nil
}
