// SPDX-License-Identifier: Apache-2.0

// Package clusterstack reads releases of Cluster Stacks as they are published.
// They are the bundles of the Cluster Stack Operator
// (github.com/SovereignCloudStack/cluster-stack-operator). It reads names of
// releases ([ParseTag]), metadata.yaml ([ParseMetadata]), and the stages in
// clusteraddon.yaml ([ParseStages]).
//
// It decides nothing about clusters, and reads no files: callers hand it content.
// All content is hostile. Keys that aren't known are tolerated and reported, as
// releases are made for newer operators, too.
package clusterstack

import (
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// MaxFileBytes bounds each YAML file of a release.
const MaxFileBytes = 256 << 10 // bytes

// Names of a release's files.
const (
	MetadataFile = "metadata.yaml"
	StagesFile   = "clusteraddon.yaml"
	ValuesFile   = "cluster-addon-values.yaml"
	// OverwriteFile is inside a stage's directory of the add-on archive.
	OverwriteFile = "overwrite.yaml"
)

// Metadata is what metadata.yaml says of a release.
type Metadata struct {
	// ClusterStack is the version of the release.
	ClusterStack Version
	// Kubernetes is the version that the release is made for, as in "v1.31.6".
	Kubernetes string
	// ClusterAddon is the version of the add-ons: it names their archive.
	ClusterAddon string
	// Unknown keys, as paths.
	Unknown []string
}

type metadataFile struct {
	APIVersion string `json:"apiVersion"`
	Versions   struct {
		ClusterStack string `json:"clusterStack"`
		Kubernetes   string `json:"kubernetes"`
		Components   struct {
			ClusterAddon string `json:"clusterAddon"`
			NodeImage    string `json:"nodeImage"`
		} `json:"components"`
	} `json:"versions"`
}

var kubernetesVersion = regexp.MustCompile(`^v?\d{1,3}\.\d{1,3}(\.\d{1,4})?([-+][0-9A-Za-z.+-]{1,64})?$`)

// ParseMetadata reads metadata.yaml.
func ParseMetadata(data []byte) (Metadata, error) {
	file := metadataFile{}
	unknown, err := decode(data, &file)
	if err != nil {
		return Metadata{}, fmt.Errorf("%s: %w", MetadataFile, err)
	}
	stack, err := ParseVersion(file.Versions.ClusterStack)
	if err != nil {
		return Metadata{}, fmt.Errorf("%s: versions.clusterStack: %w", MetadataFile, err)
	}
	addon := file.Versions.Components.ClusterAddon
	if _, err := ParseVersion(addon); err != nil {
		return Metadata{}, fmt.Errorf("%s: versions.components.clusterAddon: %w", MetadataFile, err)
	}
	kubernetes := file.Versions.Kubernetes
	if kubernetes != "" && !kubernetesVersion.MatchString(kubernetes) {
		return Metadata{}, fmt.Errorf("%s: versions.kubernetes: %.64q isn't a version, as v1.31.6 is", MetadataFile, kubernetes)
	}
	return Metadata{ClusterStack: stack, Kubernetes: kubernetes, ClusterAddon: addon, Unknown: unknown}, nil
}

// decode reads YAML, or the JSON that a worker made of it, into the struct that v points at. It returns the paths of
// keys that the struct has no fields for.
func decode(data []byte, v any) (unknown []string, err error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("it is larger than %d bytes, the most that is accepted", MaxFileBytes)
	}
	asJSON, err := yaml.YAMLToJSON(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it isn't YAML: %w", err)
	case string(asJSON) == "null":
		return nil, fmt.Errorf("it is empty")
	}
	if err := yaml.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("a field has the wrong type: %w", err)
	}
	return unknownKeys("", asJSON, v), nil
}
