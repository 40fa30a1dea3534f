// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
)

// overSSH is a server whose process is talked to.
type overSSH struct {
	client *ssh.Client
	stdin  io.Writer
	stdout io.ReadCloser
}

// dial connects to a server as the credential says, and starts its process. The connection ends with ctx at the latest.
func dial(ctx context.Context, c *auth.Client, at *url.URL) (*overSSH, error) {
	host := net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "22"))
	known, err := knownHosts(c.Credential.KnownHosts, host)
	if err != nil {
		return nil, err
	}
	signer, err := identity(c)
	if err != nil {
		return nil, err
	}
	connection, err := c.Dial(ctx, host)
	if err != nil {
		return nil, err
	}
	over, channels, requests, err := ssh.NewClientConn(connection, host, &ssh.ClientConfig{
		User: cmp.Or(at.User.Username(), "git"), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: known.check, HostKeyAlgorithms: known.algorithms(),
	})
	if err != nil {
		return nil, handshakeError(c, host, err)
	}
	s := &overSSH{client: ssh.NewClient(over, channels, requests)}
	session, err := s.client.NewSession()
	if err != nil {
		return nil, err
	}
	_ = session.Setenv("GIT_PROTOCOL", "version=2") // a server may refuse it, and speak version 0
	stdout, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdout = c.Count(ctx, stdout)
	if s.stdin, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	if err := session.Start(service + " '" + at.Path + "'"); err != nil { // the API lets no quote pass
		return nil, noRepository(host)
	}
	return s, nil
}

// identity returns the private key that the server is shown.
func identity(c *auth.Client) (ssh.Signer, error) {
	key, password := c.Credential.Identity, c.Credential.Password
	if len(key) == 0 {
		return nil, c.Unauthorized("ssh needs a private key, in key identity")
	}
	signer, err := ssh.ParsePrivateKey(key)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(password))
	}
	if err != nil { // its words may quote the key
		return nil, c.Unauthorized("key identity is no private key in PEM that key password opens")
	}
	return signer, nil
}

// handshakeError says which side refuses the other, and leaves out the words of both.
func handshakeError(c *auth.Client, host string, err error) error {
	if wrong, ok := errors.AsType[*failure.Error](err); ok {
		return wrong
	}
	if _, isNet := errors.AsType[net.Error](err); !isNet && strings.Contains(err.Error(), "unable to authenticate") {
		return c.Unauthorized(host + " doesn't take the private key")
	}
	if strings.Contains(err.Error(), "no common algorithm for host key") {
		return untrusted(host)
	}
	return brokeOff(host)
}

// Advertisement implements server.
func (s *overSSH) Advertisement() (io.Reader, error) { return s.stdout, nil }

// Command implements server.
func (s *overSSH) Command(text string) (io.Reader, error) {
	_, err := io.WriteString(s.stdin, text)
	return s.stdout, err
}

// Close implements server.
func (s *overSSH) Close() {
	auth.Release(s.stdout)
	auth.Release(s.client)
}
