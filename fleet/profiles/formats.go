// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// execExtension is the extension of a cluster that plugins get as their configuration (KEP-541).
const execExtension = "client.authentication.k8s.io/exec"

// The access providers whose formats are known are the reference plugins of the Cluster Inventory
// API (v0.1.3, folder plugins).
const (
	// tokenReader has a token in a Secret of the cluster's name.
	tokenReader = "secretreader"
	// kubeconfigReader has a kubeconfig in a Secret, of which the user of one context is taken.
	kubeconfigReader = "kubeconfig-secretreader"
)

// reference says where credentials are, and how they are written there.
type reference struct {
	provider string
	// These are what the access provider is configured with.
	ClusterName, Name, Key, Namespace, Context string
}

// referenceOf reads what an access provider is configured with.
func referenceOf(provider inventoryv1alpha1.AccessProvider) (reference, error) {
	r := reference{provider: provider.Name}
	extension := extensionOf(provider.Cluster, execExtension)
	if extension == nil {
		return reference{}, errors.New("it has no extension " + execExtension)
	}
	if err := json.Unmarshal(extension.Raw, &r); err != nil {
		return reference{}, errors.New("its extension " + execExtension + " is not of that access provider's form")
	}
	if provider.Name == tokenReader {
		r = reference{provider: provider.Name, Name: r.ClusterName, Key: "token"}
	}
	if r.Name == "" || r.Key == "" {
		return r, errors.New("its configuration has no clusterName, or no name or key of a Secret")
	}
	return r, nil
}

// user reads the credentials, or returns why it can't.
func (r reference) user(data []byte) (user *clientcmdapi.AuthInfo, problem string) {
	if r.provider == tokenReader {
		return &clientcmdapi.AuthInfo{Token: string(data)}, ""
	}
	user, err := kubeconfig.User(data, r.Context)
	if why, ok := errors.AsType[kubeconfig.Refusal](err); ok {
		return nil, "holds a kubeconfig that is refused: " + string(why)
	}
	return user, ""
}

// extensionOf returns an extension of a cluster, nil if it has none of that name.
func extensionOf(cluster clientcmdv1.Cluster, name string) *runtime.RawExtension {
	i := slices.IndexFunc(cluster.Extensions, func(e clientcmdv1.NamedExtension) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &cluster.Extensions[i].Extension
}

// compose returns the member that a kubeconfig of a cluster and a user leads to. Fields that the
// cluster may not have are found when the kubeconfig is checked.
func compose(cluster clientcmdv1.Cluster, user *clientcmdapi.AuthInfo) (fleet.Member, error) {
	made, err := kubeconfig.Of(&clientcmdapi.Cluster{
		Server: cluster.Server, ProxyURL: cluster.ProxyURL,
		TLSServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
		CertificateAuthority: cluster.CertificateAuthority, CertificateAuthorityData: cluster.CertificateAuthorityData,
	}, user)
	return fleet.Member{Kubeconfig: made}, err
}

// knownProviders lists the access providers that can be used.
func knownProviders(plugins map[string]Plugin) string {
	names := slices.AppendSeq([]string{tokenReader, kubeconfigReader}, maps.Keys(plugins))
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
