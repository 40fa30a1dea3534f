// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// trustedContextsOf returns what a file of an administrator has for each of its contexts, as client-go reads it. A context
// that is as before keeps its config, so that its cluster stays connected.
func trustedContextsOf(file string, before map[string]content) (map[string]content, error) {
	data, err := contentOf(file)
	if err != nil {
		return nil, err
	}
	all, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a kubeconfig", file) // the cause may quote a credential
	}
	for _, cluster := range all.Clusters {
		cluster.LocationOfOrigin = file
	}
	for _, user := range all.AuthInfos {
		user.LocationOfOrigin = file
	}
	if err := clientcmd.ResolveLocalPaths(all); err != nil {
		return nil, fmt.Errorf("the files that %s names: %w", file, err)
	}
	contexts := make(map[string]content, len(all.Contexts))
	for name, context := range all.Contexts {
		contexts[name] = trusted(all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo], before[name])
	}
	return contexts, nil
}

// trusted returns what a kubeconfig has for a context with a cluster and a user.
func trusted(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, before content) content {
	if cluster == nil || user == nil {
		return problem("names a cluster or a user that is not in it")
	}
	text, err := kubeconfig.Of(cluster, user)
	if err != nil {
		return problem("is not valid")
	}
	if before.text == string(text) {
		return before
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text) //nolint:forbidigo // nobody but an administrator writes the file
	if err != nil {
		return problem("is not one that client-go connects with")
	}
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true // nobody types at a manager
	}
	return content{fleet.Member{Config: config}, string(text)}
}

func problem(why string) content { return content{Member: fleet.Member{Problem: why}} }
