// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Of returns a kubeconfig for one cluster and one user, either of which may be nil. Their content
// isn't checked: the check is for [Parse].
func Of(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "only"
	config := clientcmdapi.NewConfig()
	config.CurrentContext = name
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	if cluster != nil {
		config.Clusters[name] = cluster
	}
	if user != nil {
		config.AuthInfos[name] = user
	}
	return clientcmd.Write(*config)
}

// Split returns a kubeconfig for each context of a kubeconfig, by the name of the context. Each
// holds the cluster and the user of that context alone, as of [Of].
func Split(data []byte) (map[string][]byte, error) {
	all, err := load(data)
	if err != nil {
		return nil, err
	}
	contexts := make(map[string][]byte, len(all.Contexts))
	for name, context := range all.Contexts {
		if contexts[name], err = Of(all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo]); err != nil {
			return nil, fmt.Errorf("writing the kubeconfig of context %s: %w", name, err)
		}
	}
	return contexts, nil
}

// User returns the user of a context of a kubeconfig, by default of the current one, with a token
// and a client certificate alone. A user that has anything else is refused, as by [Parse] with an
// empty Policy. Each error is a [Refusal].
func User(data []byte, context string) (*clientcmdapi.AuthInfo, error) {
	config, err := load(data)
	if err != nil {
		return nil, err
	}
	if context == "" {
		context = config.CurrentContext
	}
	if config.Contexts[context] == nil || config.AuthInfos[config.Contexts[context].AuthInfo] == nil {
		return nil, refuse("it has no such context, or the context names a user that is not in it")
	}
	user := config.AuthInfos[config.Contexts[context].AuthInfo]
	if _, err := checkUser(user); err != nil {
		return nil, err
	}
	return &clientcmdapi.AuthInfo{
		Token: user.Token, Username: user.Username, Password: user.Password,
		ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData,
	}, nil
}
