// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/recognizer"
)

// Limits of the texts with which an API server refuses a request, in bytes. Errors have these texts, and are kept and
// logged.
const (
	maxWords      = 1 << 10 // the message, or a body that is no Status
	maxCauseWords = 512
	maxName       = 253
	maxCauses     = 64
	maxRefusal    = 4 << 20 // of which the words are taken
)

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

// statuses decodes a Status, in JSON and in protobuf, and no other kind: the server names the kind. It decodes no YAML, whose
// aliases make much of little.
var statuses = func() runtime.Decoder {
	known := runtime.NewScheme()
	known.AddKnownTypes(statusKind.GroupVersion(), &metav1.Status{})
	return recognizer.NewDecoder(
		serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, known, known, serializerjson.SerializerOptions{}), protobuf.NewSerializer(known, known),
	)
}()

// refusal is the body of an answer that isn't a success. It is read to its end when somebody reads of it, and has
// the first and last words alone of what the server says.
type refusal struct {
	io.ReadCloser
	words *bytes.Reader
	err   error // ended the body
}

// boundWords has an answer that isn't a success say little. A Status becomes JSON, whatever it was.
func boundWords(response *http.Response) {
	if code := response.StatusCode; code >= http.StatusOK && code <= http.StatusPartialContent {
		return
	}
	response.Body = &refusal{ReadCloser: response.Body}
	if as := response.Header.Get("Content-Type"); as != "" && !strings.HasPrefix(as, "text/") {
		response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
}

// Read implements io.Reader.
func (r *refusal) Read(into []byte) (int, error) {
	if r.words == nil {
		var body []byte
		if body, r.err = io.ReadAll(io.LimitReader(r.ReadCloser, maxRefusal+1)); r.err == nil {
			r.err = io.EOF
		}
		r.words = bytes.NewReader(wordsOf(body))
	}
	n, err := r.words.Read(into)
	if err != nil {
		err = r.err
	}
	return n, err
}

// wordsOf returns a Status in JSON whose texts are short, or the first and last words of what is none.
func wordsOf(body []byte) []byte {
	status := &metav1.Status{}
	readable := SizeOf(body) <= maxRefusal
	if readable {
		_, _, err := statuses.Decode(body, &statusKind, status)
		readable = err == nil
	}
	if !readable {
		return []byte(shorten(string(body), maxWords))
	}
	shortenStatus(status)
	status.SetGroupVersionKind(statusKind)
	short, err := json.Marshal(status)
	if err != nil {
		return nil
	}
	return short
}

// shortenStatus cuts all texts of a Status that are long, and drops the causes that are too many.
func shortenStatus(s *metav1.Status) {
	s.ListMeta = metav1.ListMeta{Continue: orNone(s.Continue), ResourceVersion: orNone(s.ResourceVersion)}
	s.Message, s.Reason, s.Status = shorten(s.Message, maxWords), metav1.StatusReason(shorten(string(s.Reason), maxName)), shorten(s.Status, maxName)
	d := s.Details
	if d == nil {
		return
	}
	d.Name, d.Group, d.Kind, d.UID = shorten(d.Name, maxName), shorten(d.Group, maxName), shorten(d.Kind, maxName), d.UID[:min(len(d.UID), maxName)]
	d.Causes = d.Causes[:min(len(d.Causes), maxCauses)]
	for i := range d.Causes {
		c := &d.Causes[i]
		c.Type, c.Message, c.Field = metav1.CauseType(shorten(string(c.Type), maxName)), shorten(c.Message, maxCauseWords), shorten(c.Field, maxName)
	}
}

// orNone returns a token, "" if it is none that a server gives.
func orNone(token string) string {
	if len(token) > maxWords {
		return ""
	}
	return token
}

// shorten cuts the middle out of a text that is longer than the limit in bytes.
func shorten(text string, limit int) string {
	const gap = " ... "
	if len(text) <= limit {
		return text
	}
	half := (limit - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}
