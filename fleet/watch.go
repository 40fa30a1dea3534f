// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
)

// metadataFormats decode what answers in the types of metadata.
var metadataFormats = runtime.NewClientNegotiator(metadata.ConfigFor(&rest.Config{}).NegotiatedSerializer, schema.GroupVersion{})

// WatchMetadata watches the metadata of a resource in all namespaces, and calls each for every event as a
// [watch.Interface] would give it. It blocks until the watch ends, and returns an error only if it can't begin.
// A watch of Metadata has a goroutine of its own, and whoever reads it another one. This needs none, which counts
// where a fleet has tens of thousands of watches.
func (c *Connection) WatchMetadata(ctx context.Context, resource schema.GroupVersionResource, o metav1.ListOptions, each func(watch.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.openWatch(ctx, resource, o)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	mediaType, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("watching %s: the content type of the answer: %w", resource.Resource, err)
	}
	objects, events, framer, err := metadataFormats.StreamDecoder(mediaType, params)
	if err != nil {
		return fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	frames := framer.NewFrameReader(response.Body)
	for {
		// A decoder keeps a buffer as large as the largest event that it has read, so each event has one of its own.
		eventType, object, err := restwatch.NewDecoder(streaming.NewDecoder(frames, events), objects).Decode()
		switch {
		case err == nil:
			each(watch.Event{Type: eventType, Object: object})
			continue
		case ctx.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
		default:
			broken := fmt.Errorf("unable to decode an event from the watch stream: %w", err)
			each(watch.Event{Type: watch.Error, Object: apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", "ClientWatchDecoding").AsObject(broken)})
		}
		return nil
	}
}

// openWatch begins a watch.
func (c *Connection) openWatch(ctx context.Context, resource schema.GroupVersionResource, o metav1.ListOptions) (*http.Response, error) {
	if err := c.config.RateLimiter.Wait(ctx); err != nil {
		return nil, err
	}
	o.Watch = true
	path := []string{"apis", resource.Group, resource.Version, resource.Resource}
	if resource.Group == "" {
		path = []string{"api", resource.Version, resource.Resource}
	}
	url := rest.NewRequestWithClient(c.transport.Server(), "", rest.ClientContentConfig{}, nil).
		AbsPath(path...).SpecificallyVersionedParams(&o, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", answer.MetadataTypes)
	response, err := c.watches.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	retry, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return nil, apierrors.NewGenericServerResponse(response.StatusCode, "watch", resource.GroupResource(), "", "", retry, false)
}
