// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Args returns the arguments with which a kubelet starts the Deployment's first
// container: references to environment variables are replaced.
func Args(deployment *appsv1.Deployment) ([]string, error) {
	container := deployment.Spec.Template.Spec.Containers[0]
	var pairs []string
	for _, variable := range container.Env {
		value, err := envValue(deployment, variable)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, "$("+variable.Name+")", value)
	}
	expand := strings.NewReplacer(pairs...)
	args := make([]string, 0, len(container.Args))
	for _, arg := range container.Args {
		arg = expand.Replace(arg)
		if strings.Contains(arg, "$(") {
			return nil, fmt.Errorf("deployment %s: argument %q refers to a variable that isn't set", deployment.Name, arg)
		}
		args = append(args, arg)
	}
	return args, nil
}

// envValue knows the two fields of a pod that the overlays refer to.
func envValue(deployment *appsv1.Deployment, variable corev1.EnvVar) (string, error) {
	if variable.ValueFrom == nil {
		return variable.Value, nil
	}
	if field := variable.ValueFrom.FieldRef; field != nil {
		if field.FieldPath == "metadata.namespace" {
			return deployment.Namespace, nil
		}
		if key, ok := strings.CutPrefix(field.FieldPath, "metadata.labels['"); ok {
			return deployment.Spec.Template.Labels[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("deployment %s: variable %s comes from something that only a kubelet knows", deployment.Name, variable.Name)
}
