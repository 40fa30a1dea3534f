// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
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
	for _, check := range []func() error{
		o.validateScope, o.validateNames, o.validateClusterSources, o.validateTimes,
		o.validateNumbers, o.validateAddresses, o.validateServing, o.validateFiles,
	} {
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
	scope := o.instance.Scope
	switch {
	case !o.controllers() && !o.webhooks():
		return errors.New("--run and --webhook-port leave nothing to do")
	case !o.controllers() && (len(scope.Namespaces) > 0 || scope.WatchFilter != ""):
		return errors.New("--namespace and --watch-filter are for controllers; webhooks serve all instances")
	case len(scope.Namespaces) > maxNamespaces:
		return fmt.Errorf("--namespace: %d namespaces are more than %d; without --namespace all are managed", len(scope.Namespaces), maxNamespaces)
	case scope.WatchFilter == addonsv1.SharedWatchFilter:
		return fmt.Errorf("--watch-filter: %q is the label of AddonStacks for all filters; an instance needs a filter of its own", scope.WatchFilter)
	}
	for _, namespace := range scope.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--namespace: %q is no name of a namespace: %s", namespace, problems[0])
		}
	}
	return nil
}

// validateNames finds names that no object can have.
func (o *Options) validateNames() error {
	for _, flag := range []struct {
		name, value, of string
		check           func(string) []string
	}{
		{"--watch-filter", o.instance.Scope.WatchFilter, "value of a label", validation.IsValidLabelValue},
		{"--instance-name", o.instance.Name, "name of an object", validation.IsDNS1123Subdomain},
		{"--instance-namespace", o.instance.Namespace, "name of a namespace", validation.IsDNS1123Label},
		{"--leader-elect-namespace", o.manager.LeaderElectionNamespace, "name of a namespace", validation.IsDNS1123Label},
	} {
		if problems := flag.check(flag.value); flag.value != "" && len(problems) > 0 {
			return fmt.Errorf("%s: %q is no %s: %s", flag.name, flag.value, flag.of, problems[0])
		}
	}
	return nil
}

// validateAddresses finds what is no address, and ports that are taken twice. "0"
// and, but for health, "" switch a server off.
func (o *Options) validateAddresses() error {
	taken := map[string]string{} // flags by their ports
	for _, s := range []struct {
		flag, address string
		serves        bool
	}{
		{"--webhook-port", fmt.Sprintf(":%d", o.serving.Port), o.webhooks()},
		{"--hook-port", fmt.Sprintf(":%d", o.hookPort), o.webhooks()},
		{"--health-addr", o.manager.HealthProbeBindAddress, true},
		{"--diagnostics-address", o.clusterAPI.DiagnosticsAddress, true},
		{"--profiler-address", o.manager.PprofBindAddress, true},
	} {
		if !s.serves || s.address == "" || s.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(s.address)
		if err != nil {
			return fmt.Errorf("%s: %q is no address, as in :9440 or localhost:9440", s.flag, s.address)
		}
		if other, ok := taken[port]; ok && port != "0" {
			return fmt.Errorf("%s and %s both take port %s", other, s.flag, port)
		}
		taken[port] = s.flag
	}
	return nil
}

func (o *Options) validateTimes() error {
	lease, renew, retry := *o.manager.LeaseDuration, *o.manager.RenewDeadline, *o.manager.RetryPeriod
	switch {
	case o.instance.Heartbeat < registration.MinHeartbeat || o.instance.Heartbeat > registration.MaxHeartbeat:
		return fmt.Errorf("--instance-heartbeat must be from %s to %s", registration.MinHeartbeat, registration.MaxHeartbeat)
	case o.manager.LeaderElection && (lease <= renew || renew <= retry || retry <= 0):
		return errors.New("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than --leader-elect-retry-period")
	case o.syncPeriod <= 0:
		return errors.New("--sync-period must be greater than 0")
	}
	return nil
}

func (o *Options) validateNumbers() error {
	for _, flag := range []struct {
		name   string
		number int
	}{
		{"addonstack-concurrency", o.workers.AddonStackWorkers},
		{"cluster-concurrency", o.workers.ClusterWorkers},
		{"clusteraddon-concurrency", o.workers.ClusterAddonWorkers},
		{"cluster-connection-concurrency", o.fleet.Concurrency},
		{"kube-api-burst", o.kubeAPIBurst},
		{"cluster-client-burst", o.fleet.Burst},
	} {
		if flag.number < 1 {
			return fmt.Errorf("--%s must be at least 1", flag.name)
		}
	}
	switch {
	case o.kubeAPIQPS <= 0 || o.fleet.QPS <= 0:
		return errors.New("--kube-api-qps and --cluster-client-qps must be greater than 0")
	case o.render.Workers < 0 || o.render.Timeout <= 0 || o.renderMemoryMiB < 64:
		return errors.New("--render-workers must not be negative, --render-timeout greater than 0, and --render-memory-mib at least 64")
	case o.cacheSizeMiB < minCacheMiB:
		return fmt.Errorf("--cache-size-mib must be at least %d", minCacheMiB)
	case o.serving.Port < 0 || o.serving.Port > 65535:
		return fmt.Errorf("--webhook-port: %d is no port; 0 means no webhooks", o.serving.Port)
	case o.hookPort < 0 || o.hookPort > 65535:
		return fmt.Errorf("--hook-port: %d is no port; 0 means no runtime hooks", o.hookPort)
	}
	return nil
}

func (o *Options) validateServing() error {
	if errs := logsv1.Validate(o.logs, nil, nil); len(errs) > 0 {
		return fmt.Errorf("logging options: %w", errs.ToAggregate())
	}
	if !slices.Contains(hooks.FailurePolicies, o.hookFailurePolicy) {
		return fmt.Errorf("--hook-failure-policy: %q is neither %s", o.hookFailurePolicy, strings.Join(hooks.FailurePolicies, " nor "))
	}
	if _, _, err := flags.GetManagerOptions(o.clusterAPI); err != nil {
		return fmt.Errorf("TLS options: %w", err)
	}
	return nil
}

// validateFiles finds files and directories that aren't there, or have something else.
func (o *Options) validateFiles() error {
	authorities := func(file string) error {
		_, err := cert.NewPool(file)
		return err
	}
	directory := func(name string) error {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is no directory", name)
		}
		return nil
	}
	for _, flag := range []struct {
		name, path string
		check      func(string) error
	}{
		{"--webhook-client-ca-file", o.webhookClientCA, authorities},
		{"--hook-client-ca-file", o.hookClientCA, authorities},
		{"--artifact-root", o.sources.ArtifactRoot, directory},
		{"--credentials-dir", o.sources.CredentialsDir, directory},
		{"--require-signatures-by", o.sources.RequireSignaturesBy, directory},
	} {
		if flag.path == "" {
			continue
		}
		if err := flag.check(flag.path); err != nil {
			return fmt.Errorf("%s: %w", flag.name, err)
		}
	}
	return nil
}
