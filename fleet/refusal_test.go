// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusing answers a request with words of almost 4 MiB: a Status of this type, or what is none.
func refusing(t *testing.T, w http.ResponseWriter, code int, reason metav1.StatusReason, contentType string) {
	t.Helper()
	words := "first words " + strings.Repeat("of the server ", 1<<18) + " last words"
	status := &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: words, Details: &metav1.StatusDetails{
		Name: strings.Repeat("n", 1000), Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.a", Message: "it is immutable"}},
	}}
	if contentType == "many causes" {
		contentType, status.Message = runtime.ContentTypeJSON, "many causes"
		for range 10_000 {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: strings.Repeat("f", 100), Message: strings.Repeat("m", 100)})
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), contentType)
	if !ok {
		_, _ = w.Write([]byte(words))
		return
	}
	var body bytes.Buffer
	if err := codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(status, &body); err != nil {
		t.Error(err)
	}
	_, _ = w.Write(body.Bytes())
}

// TestRefusalsAreShort has a server say very much, in any form. What kind of refusal it is stays known.
func TestRefusalsAreShort(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	asks := map[string]func(*Connection) error{
		"a typed read": func(c *Connection) error {
			return c.Client().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Pod{})
		},
		"a write": func(c *Connection) error {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "a", "name": "b"}}}
			return c.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"))
		},
		"a list of metadata": func(c *Connection) error {
			_, err := c.Metadata().Resource(pods).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a watch": func(c *Connection) error {
			_, err := c.Dynamic().Resource(pods).Watch(t.Context(), metav1.ListOptions{})
			return err
		},
	}
	for form, tc := range map[string]struct {
		contentType string
		code        int
		reason      metav1.StatusReason
		is          func(error) bool
	}{
		"a Status in JSON":     {"application/json", http.StatusForbidden, metav1.StatusReasonForbidden, apierrors.IsForbidden},
		"a Status in protobuf": {"application/vnd.kubernetes.protobuf", http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, apierrors.IsInvalid},
		"a Status in YAML":     {"application/yaml", http.StatusConflict, "", apierrors.IsConflict}, // which nobody asks for, and nothing decodes
		"a text":               {"text/plain", http.StatusInternalServerError, "", apierrors.IsInternalError},
		"a page":               {"text/html; charset=utf-8", http.StatusForbidden, "", apierrors.IsForbidden},
		"bytes":                {"application/octet-stream", http.StatusNotFound, "", apierrors.IsNotFound},
		"no form":              {"", http.StatusGone, "", apierrors.IsGone},
		"many causes":          {"many causes", http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, apierrors.IsInvalid},
	} {
		t.Run(form, func(t *testing.T) {
			f, s := startFleet(t, quick()), newServer(t)
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				refuses := strings.Contains(r.URL.Path, "/pods")
				if refuses {
					refusing(t, w, tc.code, tc.reason, tc.contentType)
				}
				return refuses
			}
			conn := f.join(t, s)
			for what, ask := range asks {
				err := ask(conn)
				answer := apierrors.APIStatus(nil)
				if !tc.is(err) || !errors.As(err, &answer) {
					t.Errorf("%s: it is another error: %.300v", what, err)
					continue
				}
				status := answer.Status()
				size := len(status.String())
				if most := 32 << 10; len(err.Error()) > 1500 || size > most {
					t.Errorf("%s: it says %d bytes, and has %d: %.100v", what, len(err.Error()), size, err)
				}
				if tc.reason == "" || form == "many causes" {
					continue
				}
				if !strings.HasPrefix(status.Message, "first words") || !strings.HasSuffix(status.Message, "last words") {
					t.Errorf("%s: its first and last words are lost: %s", what, status.Message)
				}
				if _, there := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid); !there {
					t.Errorf("%s: its cause is lost", what)
				}
			}
		})
	}
}
