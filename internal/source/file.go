// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// sentFile is what a host that is no registry sent when it was asked for a file.
type sentFile struct {
	data []byte
	host string // that sent it: the request may have been redirected
	page bool   // it looks like a web page
}

// orPage is the error of content that isn't what was asked for. A web page in its place
// is told as such, as it won't be there for long; what has the promised digest isn't in
// its place. Nothing may be promised.
func (f *sentFile) orPage(promised string, otherwise *failure.Error) *failure.Error {
	if f.page && (artifact.Content{Archive: f.data}).Digest() != promised {
		return webPage(f.host)
	}
	return otherwise
}

// archive gets an archive; nil if there is none.
func (g *guest) archive(ctx context.Context, at *url.URL) (*sentFile, error) {
	return g.file(ctx, at, http.Header{}, "the archive", g.limits.ArchiveBytes)
}

// file gets a file; nil if there is none.
func (g *guest) file(ctx context.Context, at *url.URL, header http.Header, what string, most int64) (*sentFile, error) {
	// Transport compression is refused: it would make other bytes of the same file.
	header.Set("Accept-Encoding", "identity")
	response, err := g.get(ctx, at, header)
	if err != nil {
		return nil, err
	}
	defer release(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, nil
	}
	if response.ContentLength > most {
		return nil, failure.TooLarge(what, most)
	}
	sent := &sentFile{host: response.Request.URL.Host, page: looksLikePage(response)}
	sent.data, err = room.Read(ctx, response.Body, response.ContentLength, what, most)
	return sent, err
}
