// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// TestAdditionsOfAProfile reach a program only as its policies say.
func TestAdditionsOfAProfile(t *testing.T) {
	own := Plugin{Command: "a", Args: []string{"own"}, Env: []string{"BOTH=own", "OWN=own"}}
	const args, env = `["theirs", "--x"]`, `{"BOTH": "theirs", "THEIRS": "theirs"}`
	for name, tc := range map[string]struct {
		args      access.ProfileSourcedCLIArgsPolicy
		env       access.ProfileSourcedEnvVarsPolicy
		wantArgs  string
		wantEnv   string
		extension map[string]string
		fails     string
	}{
		"nothing by default": {wantArgs: "own", wantEnv: "BOTH=own OWN=own"},
		"nothing if ignored": {args: access.ProfileSourcedCLIArgsPolicyIgnore, env: access.ProfileSourcedEnvVarsPolicyIgnore, wantArgs: "own", wantEnv: "BOTH=own OWN=own"},
		"arguments":          {args: access.ProfileSourcedCLIArgsPolicyAppend, wantArgs: "own theirs --x", wantEnv: "BOTH=own OWN=own"},
		"new variables":      {env: access.ProfileSourcedEnvVarsPolicyAppendIfNotExists, wantArgs: "own", wantEnv: "BOTH=own OWN=own THEIRS=theirs"},
		"all variables":      {env: access.ProfileSourcedEnvVarsPolicyReplace, wantArgs: "own", wantEnv: "BOTH=theirs OWN=own THEIRS=theirs"},
		"arguments in another form": {
			args: access.ProfileSourcedCLIArgsPolicyAppend, extension: map[string]string{argsExtension: `{"a": "b"}`}, fails: argsExtension,
		},
		"variables in another form": {
			env: access.ProfileSourcedEnvVarsPolicyReplace, extension: map[string]string{envExtension: `["a"]`}, fails: envExtension,
		},
		"a name that is none": {
			env: access.ProfileSourcedEnvVarsPolicyReplace, extension: map[string]string{envExtension: `{"A=B": "c"}`}, fails: envExtension,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.extension == nil {
				tc.extension = map[string]string{argsExtension: args, envExtension: env}
			}
			var cluster clientcmdv1.Cluster
			for name, raw := range tc.extension {
				cluster.Extensions = append(cluster.Extensions, clientcmdv1.NamedExtension{Name: name, Extension: runtime.RawExtension{Raw: []byte(raw)}})
			}
			plugin := own
			plugin.ProfileArgs, plugin.ProfileEnv = tc.args, tc.env
			got, err := plugin.with(cluster)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			env := (&exec.Cmd{Env: got.Env}).Environ() // without those that others take the place of
			slices.Sort(env)
			if err != nil || strings.Join(got.Args, " ") != tc.wantArgs || strings.Join(env, " ") != tc.wantEnv {
				t.Errorf("%v, %v, %v", got.Args, env, err)
			}
			if !slices.Equal(own.Args, []string{"own"}) || len(own.Env) != 2 {
				t.Error("the plugin of all profiles was changed")
			}
		})
	}
}

// TestProviderFile is that of the Cluster Inventory API.
func TestProviderFile(t *testing.T) {
	exec := &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1beta1", Command: "/plugins/cloud", Args: []string{"token"},
		Env: []clientcmdapi.ExecEnvVar{{Name: "REGION", Value: "north"}},
	}
	plugins, err := PluginsOf(access.New([]access.Provider{{Name: "cloud", ExecConfig: exec, ProfileSourcedCLIArgsPolicy: "Append", ProfileSourcedEnvVarsPolicy: "Replace"}}))
	got := plugins["cloud"]
	if err != nil || got.Command != "/plugins/cloud" || got.Args[0] != "token" || got.Env[0] != "REGION=north" ||
		got.ProfileArgs != access.ProfileSourcedCLIArgsPolicyAppend || got.ProfileEnv != access.ProfileSourcedEnvVarsPolicyReplace {
		t.Errorf("%+v, %v", plugins, err)
	}
	if request := got.request(inventoryv1alpha1.AccessProvider{}); request.APIVersion != "client.authentication.k8s.io/v1beta1" {
		t.Errorf("asked as %s", request.APIVersion)
	}
	for name, file := range map[string][]access.Provider{
		"no name":          {{ExecConfig: exec}},
		"a name twice":     {{Name: "a", ExecConfig: exec}, {Name: "a", ExecConfig: exec}},
		"nothing to run":   {{Name: "a"}},
		"no command":       {{Name: "a", ExecConfig: &clientcmdapi.ExecConfig{}}},
		"another version":  {{Name: "a", ExecConfig: &clientcmdapi.ExecConfig{Command: "a", APIVersion: "v2"}}},
		"a policy of args": {{Name: "a", ExecConfig: exec, ProfileSourcedCLIArgsPolicy: "Prepend"}},
		"a policy of envs": {{Name: "a", ExecConfig: exec, ProfileSourcedEnvVarsPolicy: "Append"}},
	} {
		if _, err := PluginsOf(access.New(file)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
