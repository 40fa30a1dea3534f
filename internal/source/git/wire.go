// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// The protocol is version 2 (git help protocol-v2), which lists the branches and tags alone, and gives any commit. A server
// that knows only version 0, or isn't told, lists all that it has, and may give none but the newest commits.

// server is a Git server, for one question.
type server interface {
	// Advertisement returns the server's first answer.
	Advertisement() (io.Reader, error)
	// Command sends a command and returns the answer.
	Command(text string) (io.Reader, error)
	// Close ends the connection.
	Close()
}

// Packets that have no text.
const (
	flush     = "0000"
	delimiter = "0001"
)

// packet returns a text as it is sent.
func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// packets reads an answer.
type packets struct{ *bufio.Reader }

func packetsOf(from io.Reader) packets { return packets{bufio.NewReader(from)} }

// next returns the text of the next packet; false if that has none. A packet with an error ends the answer.
func (p packets) next() (text []byte, ok bool, err error) {
	var head [4]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return nil, false, err
	}
	size, err := strconv.ParseUint(string(head[:]), 16, 16)
	if err != nil || size == 3 {
		return nil, false, noGit()
	}
	if size < 4 {
		return nil, false, nil
	}
	text = make([]byte, size-4)
	if _, err := io.ReadFull(p, text); err != nil {
		return nil, false, err
	}
	if bytes.HasPrefix(text, []byte("ERR ")) {
		return nil, false, errRefused
	}
	return text, true, nil
}

// errRefused is a server's own error. Its words aren't told: they are the server's.
var errRefused = errors.New("the server refuses")

func noGit() error {
	return failure.New(failure.SourceUnavailable, "what answers isn't a Git server; correct git.url")
}

// advertised is what a server says of itself and its repository.
type advertised struct {
	second bool // it speaks version 2, and tells names when it is asked for them
	names  []ref
}

// ref is a name with its commit.
type ref struct{ name, commit string }

var isCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// readAdvertised reads an answer with names, or with what the server can. Over HTTP, the name of the service comes before the first.
func readAdvertised(from io.Reader) (advertised, error) {
	p := packetsOf(from)
	var found advertised
	for {
		text, ok, err := p.next()
		if err != nil || !ok {
			return found, err
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\x00") // before capabilities
		switch name, is := refOf(line); {
		case strings.HasPrefix(line, "# service="):
			if _, _, err := p.next(); err != nil {
				return found, err
			}
		case line == "version 2":
			found.second = true
		case line == "object-format=sha256":
			return found, failure.New(failure.ArtifactInvalid, "the repository names its commits by SHA-256, which isn't supported; use one that names them by SHA-1")
		case is && strings.HasSuffix(name.name, "^{}") && len(found.names) > 0: // the commit of the tag in the line before
			found.names[len(found.names)-1].commit = name.commit
		case is:
			found.names = append(found.names, name)
		}
		if len(found.names) > maxNames {
			return found, failure.TooMany("names of the repository", maxNames)
		}
	}
}

// maxNames of branches and tags, and of all else in version 0.
const maxNames = 200_000

// listNames is the command of version 2 that asks for branches and tags.
var listNames = packet("command=ls-refs\n") + delimiter + packet("peel\n") + packet("ref-prefix refs/heads/\n") + packet("ref-prefix refs/tags/\n") + flush

// refOf reads the line of a name. A tag with a text of its own has the commit elsewhere: in a further field, or in version 0
// in a further line.
func refOf(line string) (ref, bool) {
	commit, rest, _ := strings.Cut(line, " ")
	name, attributes, _ := strings.Cut(rest, " ")
	if _, peeled, is := strings.Cut(attributes, "peeled:"); is {
		commit, _, _ = strings.Cut(peeled, " ")
	}
	return ref{name, commit}, isCommit.MatchString(commit)
}

// wantCommit is the command for a commit without its history.
func (a advertised) wantCommit(commit string) string {
	if a.second {
		return packet("command=fetch\n") + delimiter + packet("no-progress\n") + packet("ofs-delta\n") + packet("deepen 1\n") +
			packet("want "+commit+"\n") + packet("done\n") + flush
	}
	return packet("want "+commit+" side-band-64k ofs-delta no-progress shallow\n") + packet("deepen 1\n") + flush + packet("done\n")
}

// readPack reads the answer to wantCommit.
func (a advertised) readPack(from io.Reader, most int64) ([]byte, error) {
	const content, problem = 1, 3 // channels of the answer
	start := map[bool]string{true: "packfile\n", false: "NAK\n"}[a.second]
	p := packetsOf(from)
	var pack bytes.Buffer
	for begun := false; ; {
		text, ok, err := p.next()
		switch {
		case err != nil:
			return nil, err
		case !begun:
			begun = string(text) == start
		case !ok:
			return pack.Bytes(), nil
		case len(text) > 0 && text[0] == content:
			if int64(pack.Len()+len(text)) > most {
				return nil, failure.TooLarge("the pack of the commit", most)
			}
			pack.Write(text[1:])
		case len(text) > 0 && text[0] == problem:
			return nil, errRefused
		}
	}
}
