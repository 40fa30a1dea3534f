// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// execExtension is the extension of a cluster that plugins get as their configuration (KEP-541).
const execExtension = "client.authentication.k8s.io/exec"

// formats read what the reference plugins of the Cluster Inventory API (v0.1.3, folder plugins)
// are configured with.
var formats = map[string]func(clientcmdv1.Cluster) (reference, error){
	"secretreader":            tokenSecret,
	"kubeconfig-secretreader": kubeconfigSecret,
}

// reference says where credentials are, and how they are written there.
type reference struct {
	namespace, name, key string
	// user reads the credentials, or returns why it can't.
	user func(data []byte) (user *clientcmdapi.AuthInfo, problem string)
}

// tokenSecret is the format of secretreader: a Secret of the cluster's name holds a token.
func tokenSecret(cluster clientcmdv1.Cluster) (reference, error) {
	var config struct {
		ClusterName string `json:"clusterName"`
	}
	if err := configOf(cluster, &config); err != nil {
		return reference{}, err
	}
	if config.ClusterName == "" {
		return reference{}, errors.New("its configuration has no clusterName")
	}
	return reference{name: config.ClusterName, key: "token", user: func(data []byte) (*clientcmdapi.AuthInfo, string) {
		return &clientcmdapi.AuthInfo{Token: string(data)}, ""
	}}, nil
}

// kubeconfigSecret is the format of kubeconfig-secretreader: a Secret holds a kubeconfig, of which
// the user of one context is taken.
func kubeconfigSecret(cluster clientcmdv1.Cluster) (reference, error) {
	var config struct {
		Name, Key, Namespace, Context string
	}
	if err := configOf(cluster, &config); err != nil {
		return reference{}, err
	}
	if config.Name == "" || config.Key == "" {
		return reference{}, errors.New("its configuration has no name or no key of a Secret")
	}
	return reference{namespace: config.Namespace, name: config.Name, key: config.Key, user: func(data []byte) (*clientcmdapi.AuthInfo, string) {
		user, err := kubeconfig.User(data, config.Context)
		if why, ok := errors.AsType[kubeconfig.Refusal](err); ok {
			return nil, "holds a kubeconfig that is refused: " + string(why)
		}
		return user, ""
	}}, nil
}

// configOf decodes the configuration that a cluster has for plugins.
func configOf(cluster clientcmdv1.Cluster, into any) error {
	for _, extension := range cluster.Extensions {
		if extension.Name != execExtension {
			continue
		}
		if err := json.Unmarshal(extension.Extension.Raw, into); err != nil {
			return errors.New("its extension " + execExtension + " is not of that access provider's form")
		}
		return nil
	}
	return errors.New("it has no extension " + execExtension)
}

// compose returns what a kubeconfig of a cluster and a user leads to. What the cluster may not have
// is found when that is checked.
func compose(cluster clientcmdv1.Cluster, user *clientcmdapi.AuthInfo) (fleet.Member, error) {
	made, err := kubeconfig.Of(&clientcmdapi.Cluster{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
		CertificateAuthority: cluster.CertificateAuthority, CertificateAuthorityData: cluster.CertificateAuthorityData, ProxyURL: cluster.ProxyURL,
	}, user)
	return fleet.Member{Kubeconfig: made}, err
}

// knownProviders lists the access providers that can be used.
func knownProviders(plugins map[string]Plugin) string {
	names := slices.Concat(slices.Collect(maps.Keys(formats)), slices.Collect(maps.Keys(plugins)))
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
