// SPDX-License-Identifier: Apache-2.0

package answer

// MetadataTypes are the media types that metadata is asked for in, as client-go's metadata client does.
const MetadataTypes = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
