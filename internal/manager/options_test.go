// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		args []string
		says string // "" if the options are good
	}{
		"no flags":                      {},
		"a kubeconfig":                  {args: []string{"--kubeconfig=/x"}},
		"several namespaces":            {args: []string{"--namespace=team-a,team-b"}},
		"webhooks alone":                {args: []string{"--run=webhooks"}},
		"controllers alone":             {args: []string{"--run=controllers", "--namespace=a", "--health-addr=:9443"}},
		"a part that is none":           {args: []string{"--run=everything"}, says: "--run"},
		"nothing to run":                {args: []string{"--run=webhooks", "--webhook-port=0"}, says: "nothing to do"},
		"an assigner":                   {args: []string{"--run=webhooks", "--assign-namespaces=a,b"}},
		"an assigner and controllers":   {args: []string{"--assign-namespaces=a"}, says: "--assign-namespaces is for --run=webhooks"},
		"an assigner of no namespace":   {args: []string{"--run=webhooks", "--assign-namespaces=A"}, says: "--assign-namespaces"},
		"moves back in time":            {args: []string{"--assign-moves-per-hour=-1"}, says: "--assign-moves-per-hour"},
		"webhooks that are drained":     {args: []string{"--run=webhooks", "--drain"}, says: "--drain"},
		"webhooks of one namespace":     {args: []string{"--run=webhooks", "--namespace=a"}, says: "webhooks serve all instances"},
		"an unknown flag":               {args: []string{"--nmespace=a"}, says: "unknown flag: --nmespace"},
		"an argument":                   {args: []string{"serve"}, says: `unexpected argument "serve"`},
		"a namespace that is none":      {args: []string{"--namespace=Team_A"}, says: "--namespace"},
		"a namespace that is a path":    {args: []string{"--namespace=../kube-system"}, says: "--namespace"},
		"a long namespace":              {args: []string{"--namespace=" + strings.Repeat("a", 64)}, says: "--namespace"},
		"a long filter":                 {args: []string{"--watch-filter=" + strings.Repeat("a", 64)}, says: "--watch-filter"},
		"a filter with a selector":      {args: []string{"--watch-filter=a,b!=c"}, says: "--watch-filter"},
		"no heartbeat":                  {args: []string{"--instance-heartbeat=0s"}, says: "--instance-heartbeat"},
		"an empty namespace in a list":  {args: []string{"--namespace=a,,b"}, says: "--namespace"},
		"a filter that is no label":     {args: []string{"--watch-filter=a b"}, says: "--watch-filter"},
		"a source nobody knows":         {args: []string{"--cluster-sources=clusters,kcp"}, says: "--cluster-sources"},
		"a source twice":                {args: []string{"--cluster-sources=clusters,self,self"}, says: "--cluster-sources"},
		"no Clusters":                   {args: []string{"--cluster-sources=secrets"}, says: "--cluster-sources"},
		"files without files":           {args: []string{"--cluster-sources=clusters,files"}, says: "--kubeconfig-files"},
		"files for no source":           {args: []string{"--kubeconfig-files=/x"}, says: "--kubeconfig-files"},
		"contexts for no source":        {args: []string{"--kubeconfig-contexts=kind-*"}, says: "--kubeconfig-contexts"},
		"a proxy without a port":        {args: []string{"--allow-proxies=http://bastion"}, says: "--allow-proxies: http://bastion: "},
		"a proxy with a password":       {args: []string{"--allow-proxies=http://a:secret@bastion:3128"}, says: "--allow-proxies: http://a:xxxxx@bastion:3128: "},
		"a proxy of another kind":       {args: []string{"--allow-proxies=ftp://bastion:21"}, says: "--allow-proxies"},
		"proxies":                       {args: []string{"--allow-proxies=http://bastion:3128,socks5://10.0.0.1:1080"}},
		"plugins for no source":         {args: []string{"--cluster-access-providers=/x"}, says: "--cluster-access-providers"},
		"all sources":                   {args: []string{"--cluster-sources=clusters,secrets,profiles,files,self", "--kubeconfig-files=/x"}},
		"the filter of shared stacks":   {args: []string{"--watch-filter=shared"}, says: "--watch-filter"},
		"too many namespaces":           {args: []string{"--namespace=" + strings.Repeat("a,", 256) + "a"}, says: "--namespace: 257 namespaces"},
		"an instance's name":            {args: []string{"--instance-name=team_a"}, says: "--instance-name"},
		"the webhooks' name":            {args: []string{"--instance-name=webhooks"}, says: "--instance-name"},
		"the first instance's name":     {args: []string{"--instance-name=system"}, says: "--instance-name"},
		"an instance's namespace":       {args: []string{"--instance-namespace=a.b"}, says: "--instance-namespace"},
		"a breathless heartbeat":        {args: []string{"--instance-heartbeat=100ms"}, says: "--instance-heartbeat must be from 1s"},
		"a sleepy heartbeat":            {args: []string{"--instance-heartbeat=76s"}, says: "to 1m15s"},
		"no keys":                       {args: []string{"--require-signatures-by=/does/not/exist"}, says: "--require-signatures-by"},
		"no credentials":                {args: []string{"--credentials-dir=/does/not/exist"}, says: "--credentials-dir"},
		"a cache that is too small":     {args: []string{"--cache-size-mib=63"}, says: "--cache-size-mib"},
		"a cache that isn't there yet":  {args: []string{"--cache-dir=/does/not/exist"}},
		"no authorities of clients":     {args: []string{"--webhook-client-ca-file=/does/not/exist"}, says: "--webhook-client-ca-file"},
		"an empty scope, as a manifest": {args: []string{"--namespace=", "--watch-filter=", "--instance-name="}},
		"leases that can't be renewed":  {args: []string{"--leader-elect", "--leader-elect-lease-duration=5s"}, says: "--leader-elect-lease-duration"},
		"no worker":                     {args: []string{"--clusteraddon-concurrency=0"}, says: "--clusteraddon-concurrency"},
		"no request at all":             {args: []string{"--kube-api-qps=0"}, says: "--kube-api-qps"},
		"a port that is none":           {args: []string{"--webhook-port=70000"}, says: "--webhook-port"},
		"a port of hooks that is none":  {args: []string{"--hook-port=-1"}, says: "--hook-port"},
		"no hooks":                      {args: []string{"--hook-port=0", "--health-addr=:0"}},
		"no authorities of hooks":       {args: []string{"--hook-client-ca-file=/does/not/exist"}, says: "--hook-client-ca-file"},
		"an artifact root that is none": {args: []string{"--artifact-root=/does/not/exist"}, says: "--artifact-root"},
		"a TLS version that is none":    {args: []string{"--tls-min-version=VersionTLS09"}, says: "TLS options"},
		"a log format that is none":     {args: []string{"--logging-format=bogus"}, says: "logging options"},
		"two servers switched off":      {args: []string{"--health-addr=0", "--diagnostics-address=0"}},
		"a lease's namespace":           {args: []string{"--leader-elect-namespace=X_Y"}, says: "--leader-elect-namespace"},
		"too little memory":             {args: []string{"--render-memory-mib=1"}, says: "--render-memory-mib"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse(tc.args)
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("Parse() failed: %v", err)
			case tc.says != "" && err == nil:
				t.Errorf("Parse() took it; want an error that says %q", tc.says)
			case tc.says != "" && !strings.Contains(err.Error(), tc.says):
				t.Errorf("Parse() says %q; want %q", err, tc.says)
			case err != nil && strings.Contains(err.Error(), "\n"):
				t.Errorf("the error has several lines: %q", err)
			}
		})
	}
}

// Cluster API's managers have these; tools and people rely on them.
func TestContractFlags(t *testing.T) {
	_, fs, err := Parse(nil)
	must.Succeed(t, err)
	for _, name := range []string{
		"namespace", "watch-filter", "leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
		"leader-elect-retry-period", "diagnostics-address", "insecure-diagnostics", "tls-min-version", "tls-cipher-suites",
		"health-addr", "profiler-address", "contention-profiling", "sync-period", "kube-api-qps", "kube-api-burst",
		"webhook-port", "webhook-cert-dir", "webhook-cert-name", "webhook-key-name", "v", "version",
	} {
		if fs.Lookup(name) == nil {
			t.Errorf("flag --%s is missing", name)
		}
	}
	o, _, err := Parse([]string{"--namespace=b,a", "--namespace=c"})
	if err != nil || !slices.Equal(o.instance.Scope.Namespaces, []string{"b", "a", "c"}) {
		t.Errorf("namespaces = %v (%v)", o.instance.Scope.Namespaces, err)
	}
}

// What no flag says follows from others. (In a pod, its namespace would come first.)
func TestIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		args                   []string
		namespace, name, lease string // lease: in the object
	}{
		"all in one":                   {namespace: "default", name: "chandler"},
		"of one namespace":             {args: []string{"--namespace=b,a"}, namespace: "b", name: "chandler-3eb6aefe17"},
		"in another order":             {args: []string{"--namespace=a,b"}, namespace: "a", name: "chandler-3eb6aefe17"},
		"with a lease":                 {args: []string{"--leader-elect", "--leader-elect-namespace=l", "--namespace=a"}, namespace: "l", name: "chandler-b3dda5b674", lease: "controller-leader-election-chandler-b3dda5b674"},
		"with a lease elsewhere":       {args: []string{"--leader-elect", "--leader-elect-namespace=l", "--instance-namespace=i"}, namespace: "i", name: "chandler"},
		"with a lease that isn't used": {args: []string{"--leader-elect-namespace=l"}, namespace: "l", name: "chandler"},
		"as the flags say":             {args: []string{"--instance-name=x", "--instance-namespace=i", "--namespace=a"}, namespace: "i", name: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := Parse(tc.args)
			must.Succeed(t, err)
			if i := o.identity(); i.Namespace != tc.namespace || i.Name != tc.name || i.LeaseName != tc.lease {
				t.Errorf("identity() = %s/%s with lease %q, want %s/%s with lease %q", i.Namespace, i.Name, i.LeaseName, tc.namespace, tc.name, tc.lease)
			}
		})
	}
}

// TestDefaultLease says that a leader outlives as long a stall as its instance does.
func TestDefaultLease(t *testing.T) {
	o, _, err := Parse(nil)
	must.Succeed(t, err)
	if left := *o.manager.RenewDeadline - *o.manager.RetryPeriod - 27*time.Second; left < *o.manager.RetryPeriod {
		t.Errorf("after a stall of 27 s there are %s left to renew the lease", left)
	}
}
