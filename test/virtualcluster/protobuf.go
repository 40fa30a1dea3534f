// SPDX-License-Identifier: Apache-2.0

package virtualcluster

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// inProtobuf encodes metadata of objects, lists of it, and events.
var inProtobuf = func() runtime.SerializerInfo {
	known := metainternalversionscheme.Codecs.SupportedMediaTypes()
	return known[slices.IndexFunc(known, func(i runtime.SerializerInfo) bool { return i.MediaType == protobufType })]
}()

// wantsMetadata reports whether a client asks for metadata alone, in protobuf: clients of many clusters do, as it costs
// them less than JSON.
func wantsMetadata(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), protobufType+";as=PartialObjectMetadata")
}

// metadataAsProtobuf returns the metadata of an object or a list that came in JSON, or its status.
func metadataAsProtobuf(data []byte) ([]byte, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, err
	}
	var o runtime.Object
	switch kind.Kind {
	case "PartialObjectMetadata":
		o = &metav1.PartialObjectMetadata{}
	case "PartialObjectMetadataList":
		o = &metav1.PartialObjectMetadataList{}
	default:
		o = &metav1.Status{}
	}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, err
	}
	return runtime.Encode(inProtobuf.Serializer, o)
}

// protobufEvents returns what writes the events of a watch, whose objects come in JSON.
func protobufEvents(w io.Writer) func(eventType string, object []byte) error {
	frames := inProtobuf.StreamSerializer.NewFrameWriter(w)
	return func(eventType string, object []byte) error {
		data, err := metadataAsProtobuf(object)
		if err != nil {
			return err
		}
		return inProtobuf.StreamSerializer.Encode(&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: data}}, frames)
	}
}
