// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Split returns a kubeconfig for each context of a kubeconfig, by the name of the context. Each
// holds that context alone, as the current one, with its cluster and user. What they hold isn't
// checked yet: that is for [Parse]. Errors match ErrRefused.
func Split(data []byte) (map[string][]byte, error) {
	all, err := load(data)
	if err != nil {
		return nil, err
	}
	contexts := make(map[string][]byte, len(all.Contexts))
	for name, context := range all.Contexts {
		if context == nil {
			continue
		}
		one := clientcmdapi.NewConfig()
		one.CurrentContext, one.Contexts[name] = name, context
		if cluster, ok := all.Clusters[context.Cluster]; ok {
			one.Clusters[context.Cluster] = cluster
		}
		if user, ok := all.AuthInfos[context.AuthInfo]; ok {
			one.AuthInfos[context.AuthInfo] = user
		}
		if contexts[name], err = clientcmd.Write(*one); err != nil {
			return nil, fmt.Errorf("writing the kubeconfig of context %s: %w", name, err)
		}
	}
	return contexts, nil
}

// User returns the user of a context of a kubeconfig, by default of the current one, with a token
// and a client certificate alone. A user that has anything else is refused, as by [Parse] with an
// empty Policy. Errors match ErrRefused.
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
