// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// discover reads the APIs of a cluster: in two requests, or one by one where the server
// doesn't aggregate them. While they are those that are known already, it is one request. The
// core group, which isn't in it, changes with the version of Kubernetes alone.
func (c *Cluster) discover(ctx context.Context, known *found, version string) (*found, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(transport.ErrDisconnected) })()
	ctx, release := budget.Holding(ctx) // until all documents are read
	defer release()
	var tag apisTag
	client, err := c.client(ctx, &tag)
	if err != nil {
		return nil, err
	}
	if known != nil && c.kubernetes == version && len(known.facts.Incomplete) == 0 && c.tag.holds(ctx, client.RESTClient()) {
		return known, nil
	}
	groups, lists, unavailable, err := client.GroupsAndMaybeResources()
	if err != nil {
		return nil, err
	}
	d := &discovered{Groups: groups.Groups, Failed: slices.Collect(maps.Keys(unavailable)), Lists: slices.Collect(maps.Values(lists))}
	if lists == nil {
		if d.Lists, d.Failed, err = oneByOne(ctx, client, groups.Groups); err != nil {
			return nil, err
		}
	}
	shared, err := d.shared(ctx, c.transport)
	if err == nil {
		c.tag = tag // an answer that broke off has one, too
	}
	return shared, err
}

// apisTag is the ETag of a server's /apis, where that is, and the form in which it was asked for; empty if there is
// none. It is compared with what the same server says, and with nothing else.
type apisTag struct{ path, accept, tag string }

// holds reports whether the server says that its APIs are those of the tag.
func (t apisTag) holds(ctx context.Context, server rest.Interface) bool {
	if t.tag == "" {
		return false
	}
	var status int
	server.Get().AbsPath(apisPath).SetHeader("Accept", t.accept).SetHeader("If-None-Match", t.tag).Do(ctx).StatusCode(&status)
	return status == http.StatusNotModified
}

const apisPath = "/apis"

// oneByOne asks for the resources of each API version. It ends with the context.
func oneByOne(ctx context.Context, client discovery.DiscoveryInterface, groups []metav1.APIGroup) (lists []*metav1.APIResourceList, failed []schema.GroupVersion, _ error) {
	for _, group := range groups {
		for _, version := range group.Versions {
			list, err := client.ServerResourcesForGroupVersion(version.GroupVersion)
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			if limit, ok := errors.AsType[*limits.Error](err); ok {
				return nil, nil, limit
			}
			if err != nil {
				failed = append(failed, schema.GroupVersion{Group: group.Name, Version: version.Version})
				continue
			}
			lists = append(lists, list)
		}
	}
	return lists, failed, nil
}

// Discovery returns a client that tells which kinds the cluster has. Each call asks it. All that one client reads has the limits of
// one discovery.
func (c *Cluster) Discovery(ctx context.Context) (discovery.DiscoveryInterface, error) {
	return c.client(ctx, nil)
}

// client returns a client whose requests end with the context. Client-go's discovery takes no context.
// The tag becomes that of what it reads; nil for who doesn't want it.
func (c *Cluster) client(ctx context.Context, tag *apisTag) (*discovery.DiscoveryClient, error) {
	config := rest.CopyConfig(c.config)
	config.RateLimiter = transport.Waiter{RateLimiter: config.RateLimiter, Under: ctx}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{
		Transport: kinds{under: ctx, base: c.transport, tag: tag, read: newDocuments(c.transport, nil)}, Timeout: config.Timeout,
	})
	if err == nil && tag != nil {
		tag.path = client.RESTClient().Get().AbsPath(apisPath).URL().Path
	}
	return client, err
}

// kinds has each answer taken for a document of the discovery, with its limits.
type kinds struct {
	under context.Context //nolint:containedctx // no request outlives it
	base  http.RoundTripper
	tag   *apisTag // of what is read; nil for who doesn't want it
	read  *documents
	// single has groups asked for one by one, so that none is kept that wasn't asked for.
	single bool
}

// RoundTrip implements http.RoundTripper.
func (k kinds) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(answer.Asking(joined{request.Context(), k.under}, answer.Document))
	stop := context.AfterFunc(k.under, func() { cancel(context.Cause(k.under)) })
	done := func() { stop(); cancel(nil) }
	request = request.Clone(ctx)
	if k.single {
		request.Header.Set("Accept", runtime.ContentTypeJSON)
	}
	response, err := k.base.RoundTrip(request)
	if err != nil {
		done()
		return nil, err
	}
	response.Body = transport.Cancelling(response.Body, done)
	if response.StatusCode != http.StatusOK {
		return response, nil
	}
	if k.tag != nil && request.URL.Path == k.tag.path {
		k.tag.accept, k.tag.tag = request.Header.Get("Accept"), response.Header.Get("ETag")
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := k.read.add(ctx, request.URL.Path, body); err != nil {
		return nil, err
	}
	whole := *response
	whole.Body = io.NopCloser(bytes.NewReader(body))
	return &whole, nil
}

// joined is a context that has the values of another one, too.
type joined struct {
	context.Context
	also context.Context
}

// Value implements context.Context.
func (j joined) Value(key any) any {
	if value := j.Context.Value(key); value != nil {
		return value
	}
	return j.also.Value(key)
}
