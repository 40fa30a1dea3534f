// SPDX-License-Identifier: Apache-2.0

// Package kubeconfigstrategy has what multicluster-runtime's tests of its provider of the Cluster Inventory API choose from.
package kubeconfigstrategy

import "sigs.k8s.io/cluster-inventory-api/pkg/access"

// A Secret with a kubeconfig has these labels, and this key.
const (
	SecretLabelKeyClusterInventoryConsumer = "x-k8s.io/cluster-inventory-consumer"
	SecretLabelKeyClusterProfile           = "x-k8s.io/cluster-profile"
	SecretDataKeyKubeConfig                = "Config"
)

// Option is one way to credentials.
type Option struct {
	Secret              *SecretStrategyOption
	CredentialsProvider *CredentialsProviderOption
}

// SecretStrategyOption takes the Secrets of a consumer.
type SecretStrategyOption struct{ ConsumerName string }

// CredentialsProviderOption runs the plugins of a provider file.
type CredentialsProviderOption struct{ Provider *access.Config }
