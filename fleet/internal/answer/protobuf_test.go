// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

func inEnvelope(t *testing.T, fields []byte) []byte {
	t.Helper()
	data, err := (&runtime.Unknown{Raw: fields}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(protobufPrefix), data...)
}

// However the items of a list are written, those that Kubernetes' decoder makes are counted.
func TestProtobufSizeCountsWhatADecoderMakes(t *testing.T) {
	const items = 100
	long := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80} // of a number that is longer than it needs to be
	for name, one := range map[string][]byte{
		"empty":                      {0x12, 0},
		"with empty metadata":        {0x12, 2, 0x0a, 0},
		"with characters alone":      append([]byte{0x12, 34, 0x7a, ' '}, bytes.Repeat([]byte{' '}, 32)...),
		"with a long tag":            {0x92, 0x80, 0x80, 0, 0},
		"with a tag beyond 32 bits":  {0x92, 0x80, 0x80, 0x80, 0x80, 1, 0},
		"with a tag beyond 64 bits":  append(append([]byte{0x92}, long[1:]...), 0x40, 0),
		"with a long length":         append(append([]byte{0x12}, long...), 0x40),
		"after another field":        {0xf8, 1, 1, 0x12, 0},
		"after a group":              {0xfb, 1, 0x82, 2, 1, 'x', 0xfc, 1, 0x12, 0},
		"after numbers of 8 bytes":   {0xf9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 0},
		"after numbers of 4 bytes":   {0xfd, 1, 1, 2, 3, 4, 0x12, 0},
		"after the list's own field": {0x0a, 0, 0x12, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list, fields := &metav1.PartialObjectMetadataList{}, bytes.Repeat(one, items)
			if err := list.Unmarshal(append(slices.Clone(fields), 0x12)); err == nil || len(list.Items) != items {
				t.Fatalf("the test's list has %d items: %v", len(list.Items), err)
			}
			for ending, end := range map[string]string{"whole": "", "broken off": "\x12", "with garbage": "\x07"} {
				if got := protobufSize(inEnvelope(t, append(slices.Clone(fields), end...))); got < jsonsize.Item*(items-1) {
					t.Errorf("%s, it counts %d", ending, got)
				}
			}
		})
	}
}

// Elements of what a list has count, too, and few of real ones count more than their bytes.
func TestProtobufSizeOfObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		object interface{ Marshal() ([]byte, error) }
		least  int
		most   int
	}{
		"owners":     {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, 1000)}}, 1000 * jsonsize.Element, 200 << 10},
		"containers": {&corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1000)}}, 1000 * jsonsize.Element, 1 << 20},
		"a text":     {&corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("many words, and few lines\n", 40_000)}}, 1_000_000, 3_000_000},
		"bytes":      {&corev1.Secret{Data: map[string][]byte{"a": bytes.Repeat([]byte{0x1f, 0x8b, 8, 0, 0xff, 0x12, 0x77, 0x99}, 128<<10)}}, 1_000_000, 3_000_000},
	} {
		data, err := tc.object.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got := protobufSize(inEnvelope(t, data))
		t.Logf("%s: %d for %d bytes", name, got, len(data))
		if got < tc.least || got > tc.most {
			t.Errorf("%s: it counts %d", name, got)
		}
	}
}
