// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/cluster-chandler/chandler/test/must"
)

// SSH is a server's repositories by SSH.
type SSH struct {
	// Address is host and port.
	Address string
	// Identity is the client's private key, and KnownHosts the line of the server's.
	Identity, KnownHosts []byte
}

// SSH serves the repositories to one client. With version, it lets the client choose the version of the protocol.
func (s *Server) SSH(t testing.TB, version bool) *SSH {
	t.Helper()
	host, client := NewKey(t), NewKey(t)
	hostSigner, err := ssh.ParsePrivateKey(host)
	must.Succeed(t, err)
	clientSigner, err := ssh.ParsePrivateKey(client)
	must.Succeed(t, err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(key.Marshal(), clientSigner.PublicKey().Marshal()) {
			return &ssh.Permissions{}, nil
		}
		return nil, io.EOF
	}}
	config.AddHostKey(hostSigner)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(connection, config, version)
		}
	}()
	address := listener.Addr().String()
	return &SSH{address, client, []byte(knownhosts.Line([]string{address}, hostSigner.PublicKey()) + "\n")}
}

// NewKey returns a new private key in PEM.
func NewKey(t testing.TB) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.Succeed(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	must.Succeed(t, err)
	return pem.EncodeToMemory(block)
}

func (s *Server) serve(connection net.Conn, config *ssh.ServerConfig, version bool) {
	defer func() { _ = connection.Close() }()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		opened, requests, err := channel.Accept()
		if err != nil {
			return
		}
		s.session(opened, requests, version)
	}
}

// session runs the command of a session.
func (s *Server) session(channel ssh.Channel, requests <-chan *ssh.Request, version bool) {
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	for request := range requests {
		switch request.Type {
		case "env":
			_ = request.Reply(version, nil)
			if version {
				env = append(env, "GIT_PROTOCOL=version=2")
			}
		case "exec":
			_ = request.Reply(true, nil)
			named := strings.Split(string(request.Payload[4:]), "'")
			command := exec.Command("git", "upload-pack", filepath.Join(s.root, named[1]))
			command.Env, command.Stdout = env, channel
			status := []byte{0, 0, 0, 0}
			stdin, err := command.StdinPipe() // which nobody waits for, unlike one that exec copies
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				return
			}
			copied := make(chan struct{})
			go func() {
				defer close(copied)
				_, _ = io.Copy(io.MultiWriter(counter{s}, stdin), channel)
			}()
			if command.Wait() != nil {
				status[3] = 128
			}
			_, _ = channel.SendRequest("exit-status", false, status)
			_ = channel.Close()
			<-copied
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// counter counts commands as they arrive.
type counter struct{ *Server }

func (c counter) Write(p []byte) (int, error) {
	c.count(string(p))
	return len(p), nil
}

// discard has no use for what is written.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// copyTo reads the body of a request, and leaves it to be read again.
func copyTo(to io.Writer, r *http.Request) (int64, error) {
	body := &bytes.Buffer{}
	n, err := io.Copy(io.MultiWriter(to, body), r.Body)
	r.Body, r.ContentLength = io.NopCloser(body), n
	return n, err
}
