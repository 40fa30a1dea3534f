// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/cluster-api/util/flags"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
)

// minCacheMiB has room for a few archives of the largest size.
const minCacheMiB = 64

// maxNamespaces is the bound of a ProviderInstance's spec.namespaces.
const maxNamespaces = 256

// validate finds values, and combinations of them, that can't work.
func (o *Options) validate() error {
	if o.Version {
		return nil
	}
	for _, check := range []func() error{o.validateScope, o.validateClusterSources, o.validateInstance, o.validateLeases, o.validateNumbers, o.validateServing} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) validateScope() error {
	for _, part := range o.run {
		if part != runControllers && part != runWebhooks {
			return fmt.Errorf("--run: %q is neither %s nor %s", part, runControllers, runWebhooks)
		}
	}
	switch {
	case !o.controllers() && !o.webhooks():
		return errors.New("--run and --webhook-port leave nothing to do")
	case !o.controllers() && (len(o.namespaces) > 0 || o.watchFilter != ""):
		return errors.New("--namespace and --watch-filter are for controllers; webhooks serve all instances")
	}
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--namespace: %q is no name of a namespace: %s", namespace, problems[0])
		}
	}
	if len(o.namespaces) > maxNamespaces {
		return fmt.Errorf("--namespace: %d namespaces are more than %d; without --namespace all are managed", len(o.namespaces), maxNamespaces)
	}
	if problems := validation.IsValidLabelValue(o.watchFilter); len(problems) > 0 {
		return fmt.Errorf("--watch-filter: %q is no value of a label: %s", o.watchFilter, problems[0])
	}
	if o.watchFilter == addonsv1.SharedWatchFilter {
		return fmt.Errorf("--watch-filter: %q is the label of AddonStacks for all filters; an instance needs a filter of its own", o.watchFilter)
	}
	return nil
}

// validateInstance finds what no ProviderInstance can have.
func (o *Options) validateInstance() error {
	if problems := validation.IsDNS1123Subdomain(o.instanceName); o.instanceName != "" && len(problems) > 0 {
		return fmt.Errorf("--instance-name: %q is no name of an object: %s", o.instanceName, problems[0])
	}
	if problems := validation.IsDNS1123Label(o.instanceNamespace); o.instanceNamespace != "" && len(problems) > 0 {
		return fmt.Errorf("--instance-namespace: %q is no name of a namespace: %s", o.instanceNamespace, problems[0])
	}
	if o.instanceHeartbeat < registration.MinHeartbeat || o.instanceHeartbeat > registration.MaxHeartbeat {
		return fmt.Errorf("--instance-heartbeat must be from %s to %s", registration.MinHeartbeat, registration.MaxHeartbeat)
	}
	return nil
}

// validateAddresses finds what is no address, and ports that are taken twice. "0"
// and, but for health, "" switch a server off.
func (o *Options) validateAddresses() error {
	taken := map[string]string{}
	if o.webhooks() {
		taken[strconv.Itoa(o.webhookPort)] = "--webhook-port"
		if other, ok := taken[strconv.Itoa(o.hookPort)]; ok {
			return fmt.Errorf("%s and --hook-port both take port %d", other, o.hookPort)
		}
		taken[strconv.Itoa(o.hookPort)] = "--hook-port"
	}
	for _, flag := range []struct{ name, address string }{
		{"--health-addr", o.healthAddr},
		{"--diagnostics-address", o.manager.DiagnosticsAddress},
		{"--profiler-address", o.profilerAddress},
	} {
		if flag.address == "" || flag.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(flag.address)
		if err != nil {
			return fmt.Errorf("%s: %q is no address, as in :9440 or localhost:9440", flag.name, flag.address)
		}
		if other, ok := taken[port]; ok && port != "0" {
			return fmt.Errorf("%s and %s both take port %s", other, flag.name, port)
		}
		taken[port] = flag.name
	}
	return nil
}

func (o *Options) validateLeases() error {
	if problems := validation.IsDNS1123Label(o.leaderElectNamespace); o.leaderElectNamespace != "" && len(problems) > 0 {
		return fmt.Errorf("--leader-elect-namespace: %q is no name of a namespace: %s", o.leaderElectNamespace, problems[0])
	}
	inOrder := o.leaderElectLeaseDuration > o.leaderElectRenewDeadline &&
		o.leaderElectRenewDeadline > o.leaderElectRetryPeriod && o.leaderElectRetryPeriod > 0
	if o.leaderElect && !inOrder {
		return errors.New("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than --leader-elect-retry-period")
	}
	return nil
}

func (o *Options) validateNumbers() error {
	for _, flag := range []struct {
		name   string
		number int
	}{
		{"addonstack-concurrency", o.addonStackConcurrency},
		{"cluster-concurrency", o.clusterConcurrency},
		{"clusteraddon-concurrency", o.clusterAddonConcurrency},
		{"cluster-connection-concurrency", o.clusterConnectionConcurrency},
		{"kube-api-burst", o.kubeAPIBurst},
		{"cluster-client-burst", o.clusterClientBurst},
	} {
		if flag.number < 1 {
			return fmt.Errorf("--%s must be at least 1", flag.name)
		}
	}
	if o.kubeAPIQPS <= 0 || o.clusterClientQPS <= 0 {
		return errors.New("--kube-api-qps and --cluster-client-qps must be greater than 0")
	}
	if o.renderWorkers < 0 || o.renderTimeout <= 0 || o.renderMemoryMiB < 64 {
		return errors.New("--render-workers must not be negative, --render-timeout greater than 0, and --render-memory-mib at least 64")
	}
	if o.cacheSizeMiB < minCacheMiB {
		return fmt.Errorf("--cache-size-mib must be at least %d", minCacheMiB)
	}
	if o.syncPeriod <= 0 {
		return errors.New("--sync-period must be greater than 0")
	}
	return nil
}

func (o *Options) validateCertificates() error {
	for flag, file := range map[string]string{"--webhook-client-ca-file": o.webhookClientCA, "--hook-client-ca-file": o.hookClientCA} {
		if file == "" {
			continue
		}
		if _, err := cert.NewPool(file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

func (o *Options) validateServing() error {
	if errs := logsv1.Validate(o.logs, nil, nil); len(errs) > 0 {
		return fmt.Errorf("logging options: %w", errs.ToAggregate())
	}
	if err := o.validateAddresses(); err != nil {
		return err
	}
	if o.webhookPort < 0 || o.webhookPort > 65535 {
		return fmt.Errorf("--webhook-port: %d is no port; 0 means no webhooks", o.webhookPort)
	}
	if o.hookPort < 0 || o.hookPort > 65535 {
		return fmt.Errorf("--hook-port: %d is no port; 0 means no runtime hooks", o.hookPort)
	}
	if !slices.Contains(hooks.FailurePolicies, o.hookFailurePolicy) {
		return fmt.Errorf("--hook-failure-policy: %q is neither %s", o.hookFailurePolicy, strings.Join(hooks.FailurePolicies, " nor "))
	}
	if err := o.validateCertificates(); err != nil {
		return err
	}
	for _, flag := range []struct{ name, directory string }{
		{"--artifact-root", o.artifactRoot}, {"--credentials-dir", o.credentialsDir}, {"--require-signatures-by", o.requireSignaturesBy},
	} {
		if info, err := os.Stat(flag.directory); flag.directory != "" && (err != nil || !info.IsDir()) {
			return fmt.Errorf("%s: %s is no directory", flag.name, flag.directory)
		}
	}
	if _, _, err := flags.GetManagerOptions(o.manager); err != nil {
		return fmt.Errorf("TLS options: %w", err)
	}
	return nil
}
