// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// tokenLife is longer than any test.
const tokenLife = 2 * time.Hour

// ServiceAccountKubeconfig returns a kubeconfig with a token of the ServiceAccount. A program that uses it has the
// rights, and the name in the audit log, of a pod that runs as this ServiceAccount.
func ServiceAccountKubeconfig(ctx context.Context, plane *controlplane.ControlPlane, namespace, name string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())),
	}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config, err := clientcmd.Load(plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}}
	config.Contexts[config.CurrentContext].AuthInfo = name
	return clientcmd.Write(*config)
}
