// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// Kubeconfig returns one for a server and a user, hostile as they may be.
func Kubeconfig(url string, ca []byte, user *clientcmdapi.AuthInfo) []byte {
	data, err := kubeconfig.Of(&clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}, user)
	if err != nil {
		panic(err) // it is written from memory
	}
	return data
}

// KubeconfigOf returns one with what a rest.Config holds of a server and a user.
func KubeconfigOf(c *rest.Config) []byte {
	return Kubeconfig(c.Host, c.CAData, &clientcmdapi.AuthInfo{
		Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData,
	})
}
