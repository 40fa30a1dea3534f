// SPDX-License-Identifier: Apache-2.0

// Package webpage tells web pages from the content in whose place they came.
package webpage

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// maxBlank is how much white space is looked over for the start of a page.
	maxBlank = 256 // bytes
	// MaxPage is how much of what looks like a page is read to know whether it is the
	// content that was asked for. Pages are smaller.
	MaxPage = 256 << 10 // bytes
)

// Error is the error of a page for people in place of an answer: it comes from what
// is between here and the source, or from a source that is being worked on.
func Error(host string) *failure.Error {
	return failure.New(failure.SourceUnavailable, "%s answers with a web page: something between may want a login, as a proxy does, or it is under maintenance, or the url is that of a page; it is asked again", host)
}

// Refuse refuses an answer that is a web page in place of a JSON document. What is
// neither is for who parses it.
func Refuse(response *http.Response) error {
	if !hasContent(response) {
		return nil
	}
	if first := FirstOf(response); first == '<' || first != '{' && first != '[' && SaysItIs(response) {
		_ = response.Body.Close()
		return Error(response.Request.URL.Host)
	}
	return nil
}

// RefuseFor refuses an answer that is a web page in place of content with a digest.
// What has the digest is the content, as ever it looks.
func RefuseFor(digest string, response *http.Response) error {
	if !hasContent(response) || !LooksLike(response) {
		return nil
	}
	start, err := io.ReadAll(io.LimitReader(response.Body, MaxPage))
	switch {
	case err != nil:
		_ = response.Body.Close()
		return err
	case len(start) < MaxPage && artifact.Content{Archive: start}.Digest() != digest:
		_ = response.Body.Close()
		return Error(response.Request.URL.Host)
	}
	response.Body = body{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}
	return nil
}

func hasContent(response *http.Response) bool {
	return response.StatusCode == http.StatusOK && response.Request.Method != http.MethodHead
}

// LooksLike tells whether an answer that should be an archive, or any file, is a web
// page by its start, or by its type. There are servers that call everything a page.
func LooksLike(response *http.Response) bool {
	const gzip = 0x1f
	first := FirstOf(response)
	return first == '<' || first != gzip && SaysItIs(response)
}

// body is one that was read from.
type body struct {
	io.Reader
	io.Closer
}

// FirstOf is the first character of the body that isn't white space; 0 if there is
// none, or it can't be read. The body can still be read in whole.
func FirstOf(response *http.Response) byte {
	ahead := bufio.NewReaderSize(response.Body, maxBlank)
	response.Body = body{ahead, response.Body}
	for n := 1; n <= maxBlank; n++ { // one by one: no more is waited for than has to come
		start, err := ahead.Peek(n)
		if err != nil {
			return 0
		}
		if first, found := artifact.FirstIn(start); found {
			return first
		}
	}
	return 0
}

// SaysItIs tells whether the answer's type is that of a web page.
func SaysItIs(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}
