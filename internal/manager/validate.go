// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
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

// reservedNames are names of instances whose namespace another overlay makes: config/shared and config/default.
var reservedNames = []string{"webhooks", "system"}

// maxNamespaces is the bound of a ProviderInstance's spec.namespaces.
const maxNamespaces = 256

// validate finds values, and combinations of them, that can't work.
func (o *Options) validate() error {
	if o.Version {
		return nil
	}
	return cmp.Or(o.validateScope(), o.validateNames(), o.validateClusterSources(), o.validateTimes(),
		o.validateNumbers(), o.validateServing(), o.validateFiles())
}

// refuse returns an error if something is wrong.
func refuse(isWrong bool, format string, args ...any) error {
	if !isWrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func (o *Options) validateScope() error {
	for _, part := range o.run {
		if part != runControllers && part != runWebhooks {
			return fmt.Errorf("--run: %q is neither %s nor %s", part, runControllers, runWebhooks)
		}
	}
	scope := o.instance.Scope
	for flag, namespaces := range map[string][]string{"--namespace": scope.Namespaces, "--assign-namespaces": o.assigner.Namespaces} {
		for _, namespace := range namespaces {
			if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
				return fmt.Errorf("%s: %q is no name of a namespace: %s", flag, namespace, problems[0])
			}
		}
	}
	return cmp.Or(
		refuse(!o.controllers() && !o.webhooks(), "--run and --webhook-port leave nothing to do"),
		refuse(!o.controllers() && (len(scope.Namespaces) > 0 || scope.WatchFilter != ""),
			"--namespace and --watch-filter are for controllers; webhooks serve all instances"),
		refuse(o.controllers() && len(o.assigner.Namespaces) > 0, "--assign-namespaces is for --run=webhooks, in the deployment that instances share"),
		refuse(!o.controllers() && o.instance.Drain, "--drain is for controllers; webhooks have no Clusters"),
		refuse(len(scope.Namespaces) > maxNamespaces,
			"--namespace: %d namespaces are more than %d; without --namespace all are managed", len(scope.Namespaces), maxNamespaces),
		refuse(scope.WatchFilter == addonsv1.SharedWatchFilter,
			"--watch-filter: %q is the label of AddonStacks for all filters; an instance needs a filter of its own", scope.WatchFilter),
	)
}

// validateNames finds names that no object can have.
func (o *Options) validateNames() error {
	isOf := func(flag, value, of string, check func(string) []string) error {
		if problems := check(value); value != "" && len(problems) > 0 {
			return fmt.Errorf("%s: %q is no %s: %s", flag, value, of, problems[0])
		}
		return nil
	}
	return cmp.Or(
		isOf("--watch-filter", o.instance.Scope.WatchFilter, "value of a label", validation.IsValidLabelValue),
		isOf("--instance-name", o.instance.Name, "name of an object", validation.IsDNS1123Subdomain),
		refuse(slices.Contains(reservedNames, o.instance.Name), "--instance-name: namespace chandler-%s is of config/shared or config/default, "+
			"which are deleted with it: give the instance another name", o.instance.Name),
		isOf("--instance-namespace", o.instance.Namespace, "name of a namespace", validation.IsDNS1123Label),
		isOf("--leader-elect-namespace", o.manager.LeaderElectionNamespace, "name of a namespace", validation.IsDNS1123Label),
	)
}

func (o *Options) validateTimes() error {
	lease, renew, retry := *o.manager.LeaseDuration, *o.manager.RenewDeadline, *o.manager.RetryPeriod
	return cmp.Or(
		refuse(o.instance.Heartbeat < registration.MinHeartbeat || o.instance.Heartbeat > registration.MaxHeartbeat,
			"--instance-heartbeat must be from %s to %s", registration.MinHeartbeat, registration.MaxHeartbeat),
		refuse(o.manager.LeaderElection && (lease <= renew || renew <= retry || retry <= 0),
			"--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than --leader-elect-retry-period"),
		refuse(o.syncPeriod <= 0, "--sync-period must be greater than 0"),
	)
}

func (o *Options) validateNumbers() error {
	atLeastOne := func(flag string, number int) error { return refuse(number < 1, "%s must be at least 1", flag) }
	return cmp.Or(
		atLeastOne("--addonstack-concurrency", o.workers.AddonStackWorkers),
		atLeastOne("--cluster-concurrency", o.workers.ClusterWorkers),
		atLeastOne("--clusteraddon-concurrency", o.workers.ClusterAddonWorkers),
		atLeastOne("--cluster-connection-concurrency", o.fleet.Concurrency),
		atLeastOne("--kube-api-burst", o.kubeAPIBurst),
		atLeastOne("--cluster-client-burst", o.fleet.Burst),
		refuse(o.assigner.MovesPerHour < 0, "--assign-moves-per-hour must not be negative"),
		refuse(o.kubeAPIQPS <= 0 || o.fleet.QPS <= 0, "--kube-api-qps and --cluster-client-qps must be greater than 0"),
		refuse(o.render.Workers < 0 || o.render.Timeout <= 0 || o.renderMemoryMiB < 64,
			"--render-workers must not be negative, --render-timeout greater than 0, and --render-memory-mib at least 64"),
		refuse(o.cacheSizeMiB < minCacheMiB, "--cache-size-mib must be at least %d", minCacheMiB),
		refuse(o.serving.Port < 0 || o.serving.Port > 65535, "--webhook-port: %d is no port; 0 means no webhooks", o.serving.Port),
		refuse(o.hookPort < 0 || o.hookPort > 65535, "--hook-port: %d is no port; 0 means no runtime hooks", o.hookPort),
	)
}

func (o *Options) validateServing() error {
	if errs := logsv1.Validate(o.logs, nil, nil); len(errs) > 0 {
		return fmt.Errorf("logging options: %w", errs.ToAggregate())
	}
	if _, _, err := flags.GetManagerOptions(o.clusterAPI); err != nil {
		return fmt.Errorf("TLS options: %w", err)
	}
	return refuse(!slices.Contains(hooks.FailurePolicies, o.hookFailurePolicy),
		"--hook-failure-policy: %q is neither %s", o.hookFailurePolicy, strings.Join(hooks.FailurePolicies, " nor "))
}

// validateFiles finds files and directories that aren't there, or have something else.
func (o *Options) validateFiles() error {
	authorities := func(flag, file string) error {
		if file == "" {
			return nil
		}
		_, err := cert.NewPool(file)
		return refuse(err != nil, "%s: %w", flag, err)
	}
	directory := func(flag, name string) error {
		info, err := os.Stat(name)
		return refuse(name != "" && (err != nil || !info.IsDir()), "%s: %s is no directory", flag, name)
	}
	return cmp.Or(
		authorities("--webhook-client-ca-file", o.webhookClientCA),
		authorities("--hook-client-ca-file", o.hookClientCA),
		directory("--artifact-root", o.sources.ArtifactRoot),
		directory("--credentials-dir", o.sources.CredentialsDir),
		directory("--require-signatures-by", o.sources.RequireSignaturesBy),
	)
}
