// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// Extensions of a cluster that have arguments and environment variables for a plugin (KEP-5339).
const (
	argsExtension = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	envExtension  = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// with returns the plugin with the arguments and the environment that a profile adds, as far as its policies let it.
func (p Plugin) with(cluster clientcmdv1.Cluster) (Plugin, error) {
	if raw := extensionOf(cluster, argsExtension); raw != nil && p.ProfileArgs == access.ProfileSourcedCLIArgsPolicyAppend {
		var args []string
		if json.Unmarshal(raw.Raw, &args) != nil {
			return p, errors.New("its extension " + argsExtension + " is no list of texts")
		}
		p.Args = slices.Concat(p.Args, args)
	}
	raw := extensionOf(cluster, envExtension)
	if raw == nil || p.ProfileEnv == "" || p.ProfileEnv == access.ProfileSourcedEnvVarsPolicyIgnore {
		return p, nil
	}
	var theirs map[string]string
	if json.Unmarshal(raw.Raw, &theirs) != nil {
		return p, errors.New("its extension " + envExtension + " is no map of texts")
	}
	var added []string
	for name, value := range theirs {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return p, errors.New("its extension " + envExtension + " has a name or a value that no environment variable has")
		}
		added = append(added, name+"="+value)
	}
	// The last value of a name counts.
	if p.ProfileEnv == access.ProfileSourcedEnvVarsPolicyAppendIfNotExists {
		p.Env = slices.Concat(added, p.Env)
	} else {
		p.Env = slices.Concat(p.Env, added)
	}
	return p, nil
}
