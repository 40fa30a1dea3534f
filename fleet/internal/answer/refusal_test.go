// SPDX-License-Identifier: Apache-2.0

package answer_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// protobufOf returns an object as an API server encodes it: its kind, and the fields of the object itself.
func protobufOf(t testing.TB, apiVersion, kind string, fields []byte) []byte {
	t.Helper()
	envelope := &apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: fields}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// answered returns the body of an answer as a client sees it.
func answered(t testing.TB, path string, code int, contentType string, body []byte, by limits.Limits) io.ReadCloser {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body))}
	bound(t, answer.NewBounds(by.Defaulted(), testingclock.NewFakePassiveClock(time.Now()), nil, budget.Tenant{}), request, response)
	return response.Body
}

// allocated returns how many bytes a function allocates, in MiB.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// A refusal is decoded into a Status, whatever else it says that it is. Small values don't become large ones.
func TestMemoryOfRefusals(t *testing.T) {
	const size = 2 << 20
	inJSON := func(before string) []byte { return []byte(before + strings.Repeat("{},", size/3) + "{}]") }
	for name, tc := range map[string]struct {
		contentType string
		body        []byte
	}{
		"a list of Pods": {apiruntime.ContentTypeJSON, append(inJSON(`{"kind":"PodList","apiVersion":"v1","items":[`), '}')},
		"a list of Pods in protobuf": {
			apiruntime.ContentTypeProtobuf, protobufOf(t, "v1", "PodList", bytes.Repeat([]byte{2<<3 | 2, 0}, size/2)),
		},
		"a Status with causes in protobuf": {
			// Field 5 are the details, and 4 of them the causes.
			apiruntime.ContentTypeProtobuf, protobufOf(t, "v1", "Status", append(binary.AppendUvarint([]byte{5<<3 | 2}, size), bytes.Repeat([]byte{4<<3 | 2, 0}, size/2)...)),
		},
		"a list of Pods in YAML":      {apiruntime.ContentTypeYAML, []byte("kind: PodList\napiVersion: v1\nitems:\n" + strings.Repeat("- {}\n", size/5))},
		"a Status with causes":        {apiruntime.ContentTypeJSON, append(inJSON(`{"kind":"Status","apiVersion":"v1","details":{"causes":[`), "}}"...)},
		"a Status with other values":  {apiruntime.ContentTypeJSON, append(inJSON(`{"kind":"Status","apiVersion":"v1","metadata":{"labels":[`), "}}"...)},
		"a Status with nameless ones": {apiruntime.ContentTypeJSON, append(inJSON(`{"details":{"causes":[`), "}}"...)},
	} {
		t.Run(name, func(t *testing.T) {
			var words []byte
			took := allocated(func() {
				words, _ = io.ReadAll(answered(t, "/api/v1/namespaces/a/pods/b", http.StatusForbidden, tc.contentType, tc.body, limits.Limits{}))
			})
			if took > 32 || len(words) > 16<<10 {
				t.Errorf("%d MiB for %d bytes", took, len(words))
			}
		})
	}
}
