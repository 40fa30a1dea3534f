// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/internal/apis"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/secretwriter"
)

// Connection is one reachable workload cluster. It is made new each time a
// cluster is connected, and is of no more use once Done is closed. All its
// clients share one rate limit and one identity, which follows a rotation of
// the credentials.
//
// GetConfig holds no credentials: its Transport adds them. So copies of it work
// for further clients, and follow a rotation, too.
type Connection struct {
	cluster.Cluster
	ctx    context.Context //nolint:containedctx // the lifetime of the connection
	cancel context.CancelFunc

	kept      bool // the Cluster is another provider's, and there is nothing else
	transport *transport.Transport
	uid       types.UID
	config    *rest.Config // of requests that aren't watches
	apis      *apis.Cluster
	direct    client.Client
	secrets   *secretwriter.Writer
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	watches   *http.Client
	version   atomic.Pointer[string]

	// Set before others see the connection: replace has it replaced, startCache runs its cache.
	replace    func(*transport.Fault)
	startCache func()
}

// Done is closed when the cluster is disconnected.
func (c *Connection) Done() <-chan struct{} { return c.ctx.Done() }

// Context ends with the connection. Watches hang on it.
func (c *Connection) Context() context.Context { return c.ctx }

// Client reads and writes directly, without a cache. Kinds that appear later
// are discovered when they are first asked for.
func (c *Connection) Client() client.Client { return c.direct }

// Secrets creates and updates Secrets, which travel once: the answer is their metadata.
func (c *Connection) Secrets() *secretwriter.Writer { return c.secrets }

// Dynamic is for lists and watches: it has no timeout of its own, so the
// context of each call must end. Connections that fall silent are closed, and
// so are all when the cluster is disconnected.
func (c *Connection) Dynamic() dynamic.Interface { return c.dynamic }

// Metadata is for lists and watches of metadata alone, with the same care.
func (c *Connection) Metadata() metadata.Interface { return c.metadata }

// Discovery returns a client that tells which kinds the cluster has. Each call asks it.
func (c *Connection) Discovery(ctx context.Context) (discovery.DiscoveryInterface, error) {
	return c.apis.Discovery(ctx)
}

// As returns a client that acts as a user, such as "system:serviceaccount:namespace:name", whose
// groups the API server knows. Otherwise it is as [Connection.Client]: it shares the transport,
// the limits and the knowledge of kinds, and ends with the connection. As sends no request: that
// the kubeconfig's user may not impersonate is the answer to the first one.
func (c *Connection) As(user string) (client.Client, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	made, err := client.New(config, client.Options{Scheme: c.GetScheme(), Mapper: c.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of user %q: %w", user, err)
	}
	return made, nil
}

// Version is the last seen Kubernetes version, e.g. "v1.36.3".
func (c *Connection) Version() string { return *c.version.Load() }

// UID is that of the cluster's namespace kube-system, by which a cluster is known. It is empty if the user may
// not read that namespace, or if it isn't read: see Options.Identify.
func (c *Connection) UID() types.UID { return c.uid }

// Facts describe what a cluster offers.
type Facts struct {
	// KubernetesVersion is e.g. "v1.36.3".
	KubernetesVersion string
	// APIVersions is sorted and holds "apps/v1" as well as "apps/v1/Deployment",
	// as .Capabilities.APIVersions of Helm does.
	APIVersions []string
	// Incomplete lists, sorted, the group versions that are registered but
	// could not be discovered. Empty as a rule.
	Incomplete []string
}

// Facts returns what the cluster offers. The version is kept fresh by the
// probe; the APIs are discovered once, and again after InvalidateFacts or a
// change of the version. Callers that ask at the same time share one
// discovery. The slices are shared: don't change them.
func (c *Connection) Facts(ctx context.Context) (Facts, error) {
	facts, err := c.apis.Facts(ctx)
	return Facts(facts), err
}

// Discover has the cluster's APIs discovered if they aren't known yet. Clients of the connection do so by themselves, but then the
// discovery, and its wait for memory, ends with the connection alone.
func (c *Connection) Discover(ctx context.Context) error { return c.apis.Discover(ctx) }

// InvalidateFacts makes the next Facts discover again, e.g. after a
// CustomResourceDefinition was installed.
func (c *Connection) InvalidateFacts() { c.apis.Invalidate() }

// Restored gives the connection up for a new one, because the cluster shows a previous state: no
// watch or cache of before holds any more. It blocks until that is known, or the connection ends.
func (c *Connection) Restored() {
	c.replace(&transport.Fault{Reason: ReasonClusterRestored, Message: "The cluster is in a previous state, as after a restore from a backup. Connecting again, to look at all of it"})
}

// shown returns the cluster that others get.
func (c *Connection) shown() cluster.Cluster {
	if c.kept {
		return c.Cluster
	}
	return c
}

// WithPages returns a context for lists that are read page by page. A page may have as much as an object then, by
// Options.Limits, and all pages as much as a list. So more of them find room in Options.Memory at the same time.
func WithPages(ctx context.Context) context.Context { return answer.Asking(ctx, answer.Page) }

// close ends the connection and everything that runs on it.
func (c *Connection) close() {
	c.cancel()
	c.transport.Shut()
}
