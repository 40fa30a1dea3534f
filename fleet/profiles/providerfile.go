// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"errors"
	"fmt"
	"slices"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthenticationv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// PluginsOf returns the plugins of a provider file of the Cluster Inventory API (KEP-5339), as [access.NewFromFile] reads
// it, or what is wrong with it. Unlike there, a plugin runs with the environment that is in the file and no other, and
// a profile's own order of access providers counts.
func PluginsOf(file *access.Config) (map[string]Plugin, error) {
	plugins := make(map[string]Plugin, len(file.Providers))
	for _, provider := range file.Providers {
		if _, twice := plugins[provider.Name]; twice || provider.Name == "" {
			return nil, fmt.Errorf("the access provider %q is there twice, or has no name", provider.Name)
		}
		if provider.ExecConfig == nil {
			return nil, fmt.Errorf("access provider %s has no execConfig", provider.Name)
		}
		plugin := Plugin{
			APIVersion: provider.ExecConfig.APIVersion, Command: provider.ExecConfig.Command, Args: provider.ExecConfig.Args,
			ProfileArgs: provider.ProfileSourcedCLIArgsPolicy, ProfileEnv: provider.ProfileSourcedEnvVarsPolicy,
		}
		for _, variable := range provider.ExecConfig.Env {
			plugin.Env = append(plugin.Env, variable.Name+"="+variable.Value)
		}
		if err := plugin.Check(); err != nil {
			return nil, fmt.Errorf("access provider %s: %w", provider.Name, err)
		}
		plugins[provider.Name] = plugin
	}
	return plugins, nil
}

// Check returns what is wrong with a plugin.
func (p Plugin) Check() error {
	versions := []string{"", clientauthenticationv1.SchemeGroupVersion.String(), clientauthenticationv1beta1.SchemeGroupVersion.String()}
	switch {
	case !slices.Contains(versions, p.APIVersion):
		return fmt.Errorf("its apiVersion %q isn't one of client-go's exec plugins", p.APIVersion)
	case !slices.Contains(argsPolicies, p.ProfileArgs):
		return fmt.Errorf("its profileSourcedCLIArgsPolicy %q is unknown", p.ProfileArgs)
	case !slices.Contains(envPolicies, p.ProfileEnv):
		return fmt.Errorf("its profileSourcedEnvVarsPolicy %q is unknown", p.ProfileEnv)
	case p.Command == "":
		return errors.New("it has no command")
	}
	return nil
}

var (
	argsPolicies = []access.ProfileSourcedCLIArgsPolicy{
		"", access.ProfileSourcedCLIArgsPolicyIgnore, access.ProfileSourcedCLIArgsPolicyAppend,
	}
	envPolicies = []access.ProfileSourcedEnvVarsPolicy{
		"", access.ProfileSourcedEnvVarsPolicyIgnore, access.ProfileSourcedEnvVarsPolicyAppendIfNotExists, access.ProfileSourcedEnvVarsPolicyReplace,
	}
)
