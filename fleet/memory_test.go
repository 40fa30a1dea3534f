// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// allocates returns how many MiB a function allocates, and fails the test if they are more.
func allocates(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > most {
		t.Errorf("%d MiB were allocated", took)
	} else {
		t.Logf("%d MiB were allocated", took)
	}
}

// field returns a field of a message in protobuf.
func field(number uint64, value []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, number<<3|2), uint64(len(value))), value...)
}

// inProtobuf returns an object with these fields, as an API server encodes it.
func inProtobuf(t *testing.T, apiVersion, kind string, fields []byte) []byte {
	t.Helper()
	data, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: fields}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// Many small values are no large ones once they are decoded, in whichever form and kind they come.
func TestMemoryOfAnswers(t *testing.T) {
	const size, meta = 6 << 20, "meta.k8s.io/v1"
	many := func(before string, size int) []byte {
		ends := map[rune]string{'{': "}", '[': "]"}
		end := ""
		for _, c := range before {
			end = ends[c] + end
		}
		return []byte(before + strings.Repeat("{},", size/3) + "{}" + end)
	}
	empty := func(number uint64, size int) []byte { return bytes.Repeat(field(number, nil), size/2) }
	list := func(c *Connection) error {
		_, err := c.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		return err
	}
	typed := func(c *Connection) error {
		return c.Client().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Pod{})
	}
	events := func(c *Connection) error { return watchFailure(t, c) }
	framed := func(object []byte) []byte {
		event := append(field(1, []byte("ADDED")), field(2, field(1, object))...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	}
	for name, tc := range map[string]struct {
		contentType string
		body        []byte
		ask         func(*Connection) error
	}{
		"a list":                {apiruntime.ContentTypeJSON, many(`{"kind":"PartialObjectMetadataList","apiVersion":"`+meta+`","items":[`, size), list},
		"a list of owners":      {apiruntime.ContentTypeJSON, many(`{"kind":"PartialObjectMetadataList","apiVersion":"`+meta+`","items":[{"metadata":{"ownerReferences":[`, 3*size), list},
		"a list in protobuf":    {apiruntime.ContentTypeProtobuf, inProtobuf(t, meta, "PartialObjectMetadataList", empty(2, size)), list},
		"a list without a form": {"", inProtobuf(t, meta, "PartialObjectMetadataList", empty(2, size)), list},
		"a list in YAML":        {"application/YAML", []byte("kind: PartialObjectMetadataList\napiVersion: " + meta + "\nitems:\n" + strings.Repeat("- {}\n", size/5)), list},
		"a list that isn't typed": {apiruntime.ContentTypeJSON, many(`{"kind":"ConfigMapList","apiVersion":"v1","items":[`, size), func(c *Connection) error {
			_, err := c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			return err
		}},
		"an object":             {apiruntime.ContentTypeJSON, many(`{"kind":"PodList","apiVersion":"v1","items":[`, size/2), typed},
		"an object in protobuf": {apiruntime.ContentTypeProtobuf, inProtobuf(t, "v1", "Pod", field(2, empty(2, size/2))), typed},
		"an object in JSON that is said to be protobuf": {apiruntime.ContentTypeProtobuf, many(`{"metadata":{"ownerReferences":[`, size/2), func(c *Connection) error {
			if _, fault := c.transport.Identify(t.Context(), transport.Subject{}); fault != nil {
				return fault
			}
			return nil
		}},
		"an event":                  {"application/JSON", many(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"`+meta+`","metadata":{"ownerReferences":[`, size/2), events},
		"an event in protobuf":      {apiruntime.ContentTypeProtobuf + ";stream=watch", framed(inProtobuf(t, meta, "PartialObjectMetadata", field(1, empty(13, size/2)))), events},
		"a large event in protobuf": {apiruntime.ContentTypeProtobuf + ";stream=watch", framed(inProtobuf(t, meta, "PartialObjectMetadata", field(1, field(1, make([]byte, 2*size))))), events},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := startFleet(t, quick()), newServer(t)
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				answers := strings.HasSuffix(r.URL.Path, "/configmaps") || strings.Contains(r.URL.Path, "/pods/") || strings.HasSuffix(r.URL.Path, "/kube-system")
				if answers {
					w.Header()["Content-Type"] = []string{tc.contentType}
					_, _ = w.Write(tc.body)
				}
				return answers
			}
			conn := f.join(t, s)
			if _, err := conn.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			allocates(t, 96, func() {
				err := tc.ask(conn)
				if err == nil {
					t.Error("it was read")
				}
				t.Logf("%.200v", err)
			})
		})
	}
}

// A discovery has a limit in all, and nothing but JSON is read of it.
func TestMemoryOfDiscoveries(t *testing.T) {
	large := []byte(`{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"` + strings.Repeat("x", 3<<19) + `"}]}`)
	for name, tc := range map[string]struct {
		groups, document string
		most             int32 // requests
		limit            string
	}{
		"many large documents": {manyGroups(100), string(large), 4, TooManyKinds},
		"many resources": {
			manyGroups(6), `{"kind":"APIResourceList","apiVersion":"v1","resources":[` + strings.Repeat("{},", 1<<20) + `{}]}`, 4, ReasonResponseTooLarge,
		},
		"groups without versions": {
			`{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Repeat(`{"name":"a"},`, 5_000) + `{}]}`, "{}", 2, TooManyKinds,
		},
		"YAML, which counts as missing": {manyGroups(1), "kind: APIResourceList\napiVersion: v1\nresources:\n" + strings.Repeat("- {}\n", 700_000), 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			_, conn := hostileServer(t, quick(), func(w io.Writer, r *http.Request) {
				asked.Add(1)
				switch r.URL.Path {
				case "/api":
					_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
				case "/apis":
					_, _ = io.WriteString(w, tc.groups)
				default:
					_, _ = io.WriteString(w, tc.document)
				}
			})
			var err error
			allocates(t, 600, func() { _, err = conn.Facts(t.Context()) })
			limit, ok := errors.AsType[*LimitError](err)
			if ok != (tc.limit != "") || ok && (limit.Reason != tc.limit || !limit.Discovery) || asked.Load() > tc.most {
				t.Errorf("%d requests: %v", asked.Load(), err)
			}
		})
	}
}
