// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"github.com/cluster-chandler/chandler/fleet"
)

const (
	pluginTimeout = 30 * time.Second
	maxOutput     = 256 << 10 // bytes
)

// Plugin is a program that gets credentials, as client-go's exec plugins do. It runs with the environment that is given
// here and no other, for at most 30 seconds. A profile adds no arguments and no environment to it, if the policies
// don't let it: the program gets the cluster alone, in KUBERNETES_EXEC_INFO.
type Plugin struct {
	// APIVersion is that of the ExecCredential: client.authentication.k8s.io/v1, which is the default, or v1beta1.
	APIVersion string   `json:"apiVersion,omitempty"`
	Command    string   `json:"command"`
	Args       []string `json:"args,omitempty"`
	// Env are entries of the form NAME=value.
	Env []string `json:"env,omitempty"`
	// ProfileArgs says what becomes of the arguments that a profile adds (KEP-5339): Ignore, which is the default, or
	// Append. ProfileEnv says it for environment variables: Ignore, which is the default, AppendIfNotExists or Replace.
	// With another policy than Ignore whoever writes the status of a profile has a say in what the program does: an
	// environment variable can make many programs run another.
	ProfileArgs access.ProfileSourcedCLIArgsPolicy `json:"profileSourcedCLIArgsPolicy,omitempty"`
	ProfileEnv  access.ProfileSourcedEnvVarsPolicy `json:"profileSourcedEnvVarsPolicy,omitempty"`
}

// access runs the plugin for a cluster.
func (p Plugin) access(ctx context.Context, provider inventoryv1alpha1.AccessProvider) (fleet.Member, error) {
	p, err := p.with(provider.Cluster)
	if err != nil {
		return fleet.Member{Problem: fmt.Sprintf("has an access provider %s that can't be used: %v", provider.Name, err)}, nil
	}
	got, err := p.run(ctx, provider)
	if err != nil {
		problem := "could not get credentials by the plugin of its access provider " + provider.Name + "; see the log of the manager"
		return fleet.Member{Problem: problem}, fmt.Errorf("running the plugin of access provider %s: %w", provider.Name, err)
	}
	m, err := compose(provider.Cluster, &clientcmdapi.AuthInfo{
		Token: got.Token, ClientCertificateData: []byte(got.ClientCertificateData), ClientKeyData: []byte(got.ClientKeyData),
	})
	if got.ExpirationTimestamp != nil {
		m.Expires = got.ExpirationTimestamp.Time
	}
	return m, err
}

// run returns what the program answers. Errors hold nothing that it printed: that may be secret.
func (p Plugin) run(ctx context.Context, provider inventoryv1alpha1.AccessProvider) (*clientauthenticationv1.ExecCredentialStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginTimeout)
	defer cancel()
	info, err := json.Marshal(p.request(provider))
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, p.Command, p.Args...)
	command.Env = append(slices.Clone(p.Env), "KUBERNETES_EXEC_INFO="+string(info)) // the last of a name counts
	command.WaitDelay = time.Second
	output := &limited{}
	command.Stdout = output
	if err := command.Run(); err != nil {
		return nil, err
	}
	var credential clientauthenticationv1.ExecCredential
	if json.Unmarshal(output.Bytes(), &credential) != nil || credential.Status == nil {
		return nil, errors.New("it printed no ExecCredential with a status")
	}
	return credential.Status, nil
}

func (p Plugin) request(provider inventoryv1alpha1.AccessProvider) *clientauthenticationv1.ExecCredential {
	cluster := &clientauthenticationv1.Cluster{
		Server: provider.Cluster.Server, TLSServerName: provider.Cluster.TLSServerName,
		CertificateAuthorityData: provider.Cluster.CertificateAuthorityData,
	}
	if config := extensionOf(provider.Cluster, execExtension); config != nil {
		cluster.Config = *config
	}
	credential := &clientauthenticationv1.ExecCredential{Spec: clientauthenticationv1.ExecCredentialSpec{Cluster: cluster}}
	credential.APIVersion, credential.Kind = cmp.Or(p.APIVersion, clientauthenticationv1.SchemeGroupVersion.String()), "ExecCredential"
	return credential
}

// limited holds what a program prints, up to maxOutput.
type limited struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > maxOutput {
		return 0, errors.New("it printed too much")
	}
	return l.Buffer.Write(data)
}
