// SPDX-License-Identifier: Apache-2.0

package virtualcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// sharedGroups have kinds with the same objects in all virtual clusters, or none at all.
var sharedGroups = []string{"apiextensions.k8s.io", "apiregistration.k8s.io", "authorization.k8s.io", "authentication.k8s.io"}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := requests.NewRequestInfo(r)
	if err == nil {
		err = c.relay(w, r, info)
	}
	if err != nil && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// relay passes a request on, and the answer back.
func (c *cluster) relay(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) error {
	renamed := info.IsResourceRequest && !slices.Contains(sharedGroups, info.APIGroup)
	out, err := c.request(r, info, renamed)
	if err != nil {
		return err
	}
	response, err := c.transport.RoundTrip(out)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.Header().Del("Content-Length")
	switch {
	case !renamed || response.StatusCode >= http.StatusMultipleChoices:
		w.WriteHeader(response.StatusCode)
		w.(http.Flusher).Flush() // a watch may have no event for long
		_, err = io.Copy(flushing{w}, response.Body)
		return err
	case info.Verb == "watch":
		c.watch(w, response.Body, wantsMetadata(r))
		return nil
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	answer = c.fromServer(answer)
	if wantsMetadata(r) {
		if answer, err = metadataAsProtobuf(answer); err != nil {
			return err
		}
		w.Header().Set("Content-Type", protobufType)
	}
	w.WriteHeader(response.StatusCode)
	_, err = w.Write(answer)
	return err
}

// request returns the request that the server gets.
func (c *cluster) request(r *http.Request, info *request.RequestInfo, renamed bool) (*http.Request, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = c.server.Scheme, c.server.Host, "", ""
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding") // the transport unpacks what it asks for
	if !renamed {
		return out, nil
	}
	out.Header.Set("Accept", strings.ReplaceAll(out.Header.Get("Accept"), protobufType, "application/json"))
	out.URL.Path = c.path(info)
	query, err := c.query(out.URL.Query(), info)
	if err != nil {
		return nil, err
	}
	out.URL.RawQuery = query.Encode()
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return out, err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), protobufType) {
		if body, err = asJSON(body); err != nil {
			return nil, err
		}
		out.Header.Set("Content-Type", "application/json")
	}
	if body, err = c.toServer(body, info, r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out, nil
}

// watch passes on each event as it comes, until either side ends it.
func (c *cluster) watch(w http.ResponseWriter, events io.Reader, inProtobuf bool) {
	out := flushing{w}
	send := func(eventType string, object []byte) error {
		_, err := fmt.Fprintf(out, `{"type":%q,"object":%s}`+"\n", eventType, object)
		return err
	}
	if inProtobuf {
		w.Header().Set("Content-Type", protobufType+";stream=watch")
		send = protobufEvents(out)
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for decoder := json.NewDecoder(events); ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return
		}
		if err := send(event.Type, c.fromServer(event.Object)); err != nil {
			return
		}
	}
}

// flushing is a writer that holds nothing back.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

// asJSON returns an object that came in protobuf.
func asJSON(data []byte) ([]byte, error) {
	o, kind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(o)
}
