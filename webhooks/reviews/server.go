// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// maxStreams of one HTTP/2 connection. An API server opens another connection for more.
	maxStreams = 32
	// maxUnread is how much is taken of a body that waits for a slot, in bytes: the least that HTTP/2 allows. A connection
	// takes so much of each stream: those that wait must not stop one that has a slot.
	maxUnread = 64 << 10
	// maxHeaderBytes of a request. API servers send a few hundred bytes.
	maxHeaderBytes = 16 << 10
	// headerTimeout is how long a handshake and the headers of a request may take, and answerTimeout all that follows. API
	// servers wait no longer.
	headerTimeout, answerTimeout = 10 * time.Second, 30 * time.Second
	// idleTimeout is that of API servers, which close connections first.
	idleTimeout = 90 * time.Second
	// stopTimeout is how long requests may take that are under way when the server ends.
	stopTimeout = 15 * time.Second
)

// Options of a server.
type Options struct {
	webhook.Options
	// ClientCAFile has the authorities of which clients have to show a certificate, in PEM; "" for no such need.
	// Conversion answers without one: API servers show none there.
	ClientCAFile string
	// ReadTimeout is how long a request may take to come. Defaults to ten seconds.
	ReadTimeout time.Duration
}

// New returns a server with limits on all that it serves.
func New(o Options) (webhook.Server, error) {
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	s := &server{Server: webhook.NewServer(o.Options), options: o, limiters: map[kind]*limiter{}}
	for kind, size := range maxBytes {
		s.limiters[kind] = newLimiter(size)
	}
	if o.ClientCAFile != "" {
		pool, err := cert.NewPool(o.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of clients: %w", err)
		}
		// A handshake without a certificate succeeds, as conversion needs that.
		s.options.TLSOpts = append(slices.Clone(o.TLSOpts), func(c *tls.Config) { c.ClientCAs, c.ClientAuth = pool, tls.VerifyClientCertIfGiven })
	}
	return s, nil
}

// server has the register of webhooks, and their metrics, from controller-runtime. The listener is its own.
type server struct {
	webhook.Server
	options  Options
	limiters map[kind]*limiter
	started  atomic.Bool
}

// Register serves a webhook at the path.
func (s *server) Register(path string, hook http.Handler) {
	kind := kindOf(path)
	limited, certified := s.limiters[kind].handler(hook), s.options.ClientCAFile != "" && kind != conversion
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certified && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			http.Error(w, "a client certificate is required", http.StatusUnauthorized)
			return
		}
		limited.ServeHTTP(w, r)
	}))
}

// Start serves until the context ends, and then until the requests under way have ended.
func (s *server) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	config := &tls.Config{NextProtos: []string{"h2"}} // as controller-runtime has it
	for _, option := range s.options.TLSOpts {
		option(config)
	}
	if config.GetCertificate == nil {
		file := func(name string) string { return filepath.Join(s.options.CertDir, name) }
		watcher, err := certwatcher.New(file(cmp.Or(s.options.CertName, "tls.crt")), file(cmp.Or(s.options.KeyName, "tls.key")))
		if err != nil {
			return fmt.Errorf("reading the serving certificate: %w", err)
		}
		config.GetCertificate = watcher.GetCertificate
		group.Go(func() error {
			if err := watcher.Start(ctx); err != nil {
				logf.FromContext(ctx).Error(err, "A new serving certificate won't be noticed")
			}
			return nil
		})
	}
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address())
	if err != nil {
		return err
	}
	connections := &connections{open: map[net.Conn]string{}}
	serving := &http.Server{
		Handler: s.WebhookMux(), BaseContext: func(net.Listener) context.Context { return ctx },
		MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ReadTimeout: s.options.ReadTimeout, WriteTimeout: answerTimeout + headerTimeout,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: maxUnread, MaxReceiveBufferPerConnection: maxStreams * maxUnread,
		},
		ConnState: connections.limit,
		ErrorLog:  log.New(&sparse{logger: logf.FromContext(ctx), limiter: rate.NewLimiter(1, 10)}, "", 0),
	}
	group.Go(func() error {
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if serving.Shutdown(stopping) != nil {
			return serving.Close()
		}
		return nil
	})
	group.Go(func() error {
		s.started.Store(true)
		if err := serving.Serve(tls.NewListener(tcp, config)); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving webhooks: %w", err)
		}
		return nil
	})
	return group.Wait()
}

func (s *server) address() string {
	return net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
}

// sparse logs what has to do with single connections, at most one line a second: anybody may open some.
type sparse struct {
	logger  logr.Logger
	limiter *rate.Limiter
}

// Write logs one line, or leaves it out.
func (s *sparse) Write(line []byte) (int, error) {
	if s.limiter.Allow() {
		s.logger.Info("The webhook server has trouble with a client", "error", strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// StartedChecker reports whether connections are accepted.
func (s *server) StartedChecker() healthz.Checker {
	return func(r *http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server hasn't been started yet")
		}
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: headerTimeout}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it asks itself
		conn, err := dialer.DialContext(r.Context(), "tcp", s.address())
		if err != nil {
			return fmt.Errorf("the webhook server isn't reached: %w", err)
		}
		return conn.Close()
	}
}
