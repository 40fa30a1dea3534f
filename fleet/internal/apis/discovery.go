// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// maxGroupVersions is how many API versions a cluster may have, of all groups. Each
// may cost a request, where the server doesn't aggregate its discovery.
const maxGroupVersions = 1000

// discover reads the APIs of a cluster: in two requests, or one by one where the server
// doesn't aggregate them. While they are those that are known already, it is one request. The
// core group, which isn't in it, changes with the version of Kubernetes alone.
func (c *Cluster) discover(ctx context.Context, known *found, version string) (*found, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(transport.ErrDisconnected) })()
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
	shared, err := d.shared()
	if err == nil {
		c.tag = tag // an answer that broke off has one, too
	}
	return shared, err
}

// apisTag is the ETag of a server's /apis, and the form in which it was asked for; empty if there is
// none. It is compared with what the same server says, and with nothing else.
type apisTag struct{ accept, tag string }

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

// Discovery returns a client that tells which kinds the cluster has. Each call asks it.
func (c *Cluster) Discovery(ctx context.Context) (discovery.DiscoveryInterface, error) {
	return c.client(ctx, nil)
}

// client returns a client whose requests end with the context. Client-go's discovery takes no context.
// The tag becomes that of what it reads; nil for who doesn't want it.
func (c *Cluster) client(ctx context.Context, tag *apisTag) (*discovery.DiscoveryClient, error) {
	config := rest.CopyConfig(c.config)
	config.RateLimiter = transport.Waiter{RateLimiter: config.RateLimiter, Under: ctx}
	return discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{
		Transport: kinds{under: ctx, base: c.base, tag: tag, read: newDocuments()}, Timeout: config.Timeout,
	})
}

// kinds refuses a list of more API versions than are ever asked for, and documents that are too large in all.
type kinds struct {
	under context.Context //nolint:containedctx // no request outlives it
	base  http.RoundTripper
	tag   *apisTag // of what is read; nil for who doesn't want it
	read  *documents
}

// RoundTrip implements http.RoundTripper.
func (k kinds) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	stop := context.AfterFunc(k.under, func() { cancel(context.Cause(k.under)) })
	done := func() { stop(); cancel(nil) }
	response, err := k.base.RoundTrip(request.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	response.Body = transport.Cancelling(response.Body, done)
	if response.StatusCode != http.StatusOK || !isDocument(request.URL.Path) {
		return response, nil
	}
	if k.tag != nil && request.URL.Path == apisPath {
		*k.tag = apisTag{accept: request.Header.Get("Accept"), tag: response.Header.Get("ETag")}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := k.read.add(request, body); err != nil {
		return nil, err
	}
	if n := groupVersions(body); n > maxGroupVersions {
		return nil, &limits.Error{
			Reason:    limits.TooManyKinds,
			Message:   fmt.Sprintf("%s lists %d API versions; at most %d are read", request.URL.Path, n, maxGroupVersions),
			Discovery: true,
		}
	}
	answer := *response
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return &answer, nil
}

// groupVersions counts the API versions in a discovery document, aggregated or not. A group without any counts, too.
func groupVersions(document []byte) int {
	type group struct {
		Versions []struct{} `json:"versions"`
	}
	var list struct {
		Groups, Items []group
		Versions      []string // of /api
	}
	_ = json.Unmarshal(document, &list) // what is of another type is left out, and the rest counted
	n := len(list.Versions)
	for _, g := range append(list.Groups, list.Items...) {
		n += max(len(g.Versions), 1)
	}
	return n
}
