// SPDX-License-Identifier: Apache-2.0

package virtualcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func namespaced(info *request.RequestInfo) bool {
	return info.Namespace != "" && info.Resource != "namespaces"
}

// path returns where the server has what a request is about.
func (c *cluster) path(info *request.RequestInfo) string {
	path, parts := []string{"", info.APIPrefix}, slices.Clone(info.Parts)
	if info.APIGroup != "" {
		path = append(path, info.APIGroup)
	}
	path = append(path, info.APIVersion)
	if namespaced(info) {
		path = append(path, "namespaces", c.prefix+info.Namespace)
	} else if len(parts) > 1 {
		parts[1] = c.prefix + parts[1]
	}
	return strings.Join(append(path, parts...), "/")
}

// query returns a query that finds objects of the cluster alone.
func (c *cluster) query(query url.Values, info *request.RequestInfo) (url.Values, error) {
	if query.Has("fieldSelector") {
		return nil, fmt.Errorf("virtual clusters have no field selectors: %s", query.Get("fieldSelector"))
	}
	if !namespaced(info) && len(info.Parts) == 1 && info.Verb != "create" {
		selector := clusterLabel + "=" + c.name
		if given := query.Get("labelSelector"); given != "" {
			selector = given + "," + selector
		}
		query.Set("labelSelector", selector)
	}
	return query, nil
}

// toServer returns an object with the name that it has on the server, and the label.
func (c *cluster) toServer(data []byte, info *request.RequestInfo, contentType string) ([]byte, error) {
	apply := strings.HasPrefix(contentType, "application/apply-patch")
	if info.Verb == "patch" && strings.HasPrefix(contentType, "application/json-patch") {
		return data, nil
	}
	object, err := members(data)
	if err != nil {
		return nil, err
	}
	if object["metadata"] == nil {
		return data, nil // as options of a deletion have none
	}
	metadata, err := members(object["metadata"])
	if err != nil {
		return nil, err
	}
	switch name := ""; {
	case namespaced(info) && (metadata["namespace"] != nil || info.Verb == "create"):
		metadata["namespace"] = encoded(c.prefix + info.Namespace)
	case !namespaced(info) && json.Unmarshal(metadata["name"], &name) == nil:
		metadata["name"] = encoded(c.prefix + name)
	}
	if apply || info.Verb == "create" || info.Verb == "update" {
		labels := map[string]json.RawMessage{}
		if metadata["labels"] != nil {
			if labels, err = members(metadata["labels"]); err != nil {
				return nil, err
			}
		}
		labels[clusterLabel] = encoded(c.name)
		metadata["labels"] = encoded(labels)
	}
	object["metadata"] = encoded(metadata)
	return encoded(object), nil
}

// fromServer returns an object, or all of a list, as they are in the cluster.
func (c *cluster) fromServer(data []byte) []byte {
	object, err := members(data)
	if err != nil {
		return data
	}
	if items := []json.RawMessage(nil); json.Unmarshal(object["items"], &items) == nil {
		for i := range items {
			items[i] = c.fromServer(items[i])
		}
		object["items"] = encoded(items)
		return encoded(object)
	}
	metadata, err := members(object["metadata"])
	if err != nil {
		return data
	}
	key, name := "name", ""
	if metadata["namespace"] != nil {
		key = "namespace"
	}
	if json.Unmarshal(metadata[key], &name) != nil || !strings.HasPrefix(name, c.prefix) {
		return data
	}
	metadata[key] = encoded(strings.TrimPrefix(name, c.prefix))
	if labels, err := members(metadata["labels"]); err == nil {
		delete(labels, clusterLabel)
		metadata["labels"] = encoded(labels)
		if len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	if fields := metadata["managedFields"]; fields != nil {
		metadata["managedFields"] = withoutLabel(fields)
	}
	object["metadata"] = encoded(metadata)
	return encoded(object)
}

// withoutLabel returns managed fields without the label: whoever applied an object doesn't know of it.
func withoutLabel(fields []byte) []byte {
	label := `"f:` + clusterLabel + `":{}`
	// What has no other member goes with it: an empty one would mean that all of it is managed.
	labels := `"f:labels":{` + label + `}`
	for _, member := range []string{`"f:metadata":{` + labels + `}`, labels, label} {
		for _, form := range []string{member + ",", "," + member, member} {
			fields = bytes.ReplaceAll(fields, []byte(form), nil)
		}
	}
	return fields
}

// members returns one level of a JSON object.
func members(data []byte) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	err := json.Unmarshal(data, &all)
	return all, err
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // what was decoded can be encoded
	}
	return data
}
