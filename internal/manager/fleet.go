// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/controllers"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/fleet/profiles"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/fleet/self"
)

// clustersSource is the value of --cluster-sources for Cluster API's Clusters. Others have the
// names of the fleet's sources.
const clustersSource = "clusters"

var clusterSources = []string{clustersSource, secrets.Name, profiles.Name, files.Name, self.Name}

// validateClusterSources finds sources that are unknown or incomplete, and reads which proxies they may use.
func (o *Options) validateClusterSources() error {
	seen := map[string]bool{}
	for _, name := range o.clusterSources {
		if !slices.Contains(clusterSources, name) || seen[name] {
			return fmt.Errorf("--cluster-sources: %q isn't one of %v, or is there twice", name, clusterSources)
		}
		seen[name] = true
	}
	var err error
	o.fleet.Proxies, err = parseProxies(o.allowProxies)
	return cmp.Or(
		refuse(!seen[clustersSource], "--cluster-sources: %s has to be among them", clustersSource),
		refuse(seen[files.Name] != (len(o.kubeconfigs.Paths) > 0), "--kubeconfig-files and files in --cluster-sources need each other"),
		refuse(len(o.kubeconfigs.Contexts) > 0 && !seen[files.Name], "--kubeconfig-contexts is for files in --cluster-sources"),
		refuse(o.clusterAccessProviders != "" && !seen[profiles.Name], "--cluster-access-providers is for profiles in --cluster-sources"),
		err,
	)
}

// listTimeout is how long a cluster may take to answer a list, page by page. After that its
// ClusterAddon says what isn't answered.
const listTimeout = 45 * time.Second

func newFleet(o *Options) (*fleet.Provider, error) {
	options := o.fleet
	options.UserAgent, options.DirectReads, options.ListTimeout = userAgent(), true, listTimeout
	options.Identify = !o.allowDuplicates
	for _, name := range o.clusterSources {
		source, err := o.clusterSource(name)
		if err != nil {
			return nil, err
		}
		options.Sources = append(options.Sources, source)
	}
	return fleet.NewProvider(options), nil
}

// clusterSource makes one of the sources. All of them keep to the watch filter.
func (o *Options) clusterSource(name string) (fleet.Source, error) {
	own, filter := labels.Set{}, o.instance.Scope.WatchFilter
	if filter != "" {
		own[clusterv1.WatchLabel] = filter
	}
	selector := own.AsSelector()
	matches := func(has map[string]string) bool { return selector.Matches(labels.Set(has)) }
	switch name {
	case secrets.Name:
		return secrets.New(secrets.Options{Match: matches}), nil
	case profiles.Name:
		plugins, err := readPlugins(o.clusterAccessProviders)
		return profiles.New(profiles.Options{Match: matches, Plugins: plugins}), err
	case files.Name:
		source, err := files.New(files.Options{Paths: o.kubeconfigs.Paths, Contexts: o.kubeconfigs.Contexts, Labels: own})
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig-files and --kubeconfig-contexts: %w", err)
		}
		return source, nil
	case self.Name:
		return self.Source{Labels: own}, nil
	}
	return capi.New(capi.Options{
		WatchFilter: filter, Cluster: &clusterv1.Cluster{}, List: &clusterv1.ClusterList{}, AllowDuplicates: o.allowDuplicates,
	}), nil
}

// parseProxies reads which proxies kubeconfigs may name.
func parseProxies(named []string) ([]*url.URL, error) {
	proxies := make([]*url.URL, 0, len(named))
	for _, name := range named {
		proxy, err := url.Parse(name)
		if err != nil {
			return nil, errors.New("--allow-proxies: one of them isn't a URL") // it may hold a password
		}
		if err := kubeconfig.CheckProxy(proxy); err != nil {
			return nil, fmt.Errorf("--allow-proxies: %s: %w", proxy.Redacted(), err)
		}
		proxies = append(proxies, proxy)
	}
	return proxies, nil
}

// readPlugins reads which programs get credentials for access providers of ClusterProfiles.
func readPlugins(file string) (map[string]profiles.Plugin, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--cluster-access-providers: %w", err)
	}
	var providers access.Config
	if yaml.Unmarshal(data, &providers) == nil && len(providers.Providers) > 0 {
		plugins, err := profiles.PluginsOf(&providers)
		if err != nil {
			return nil, fmt.Errorf("--cluster-access-providers: %s: %w", file, err)
		}
		return plugins, nil
	}
	plugins := map[string]profiles.Plugin{}
	if err := yaml.UnmarshalStrict(data, &plugins); err != nil {
		return nil, fmt.Errorf("--cluster-access-providers: %s isn't a map of access providers to command, args and env: %w", file, err)
	}
	for name, plugin := range plugins {
		if err := plugin.Check(); err != nil {
			return nil, fmt.Errorf("--cluster-access-providers: access provider %s in %s: %w", name, file, err)
		}
	}
	return plugins, nil
}

// reads returns what the controllers list and watch, with what the sources of clusters need.
func (o *Options) reads() []schema.GroupResource {
	if slices.Contains(o.clusterSources, profiles.Name) {
		return slices.Concat(controllers.Reads, controllers.ProfileReads)
	}
	return controllers.Reads
}
