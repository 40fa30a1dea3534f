// SPDX-License-Identifier: Apache-2.0

// The registry command is a real OCI registry for tests, on a free port of the loopback interface, with its content
// in memory. It prints its address, and then a line for each request it answered: method, path, status.
//
//	go -C hack/registry run . [-tls-cert file -tls-key file] [-htpasswd file]
//
// It ends when its standard input does, so that it never outlives the test that started it.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/felixge/httpsnoop"
	"github.com/sirupsen/logrus"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	certFile := flag.String("tls-cert", "", "Certificate to serve TLS with.")
	keyFile := flag.String("tls-key", "", "Key of the certificate.")
	htpasswd := flag.String("htpasswd", "", "File of users, with bcrypt. Without it there is no authentication.")
	address := flag.String("address", "127.0.0.1:0", "Address to listen on.")
	flag.Parse()

	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": configuration.Parameters{}}}
	logrus.SetOutput(io.Discard)
	config.HTTP.Secret = "only-for-tests"
	config.Catalog.MaxEntries = 1000
	if *htpasswd != "" {
		config.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "test", "path": *htpasswd}}
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", *address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           logged(os.Stdout, handlers.NewApp(context.Background(), config)),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listener.Addr())
	if *certFile == "" {
		return server.Serve(listener)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return server.ServeTLS(listener, *certFile, *keyFile)
}

// logged writes a line for each request, before its answer goes out: who has the answer finds the line.
func logged(out io.Writer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var once sync.Once
		log := func(status int) { once.Do(func() { fmt.Fprintf(out, "%s %s %d\n", r.Method, r.URL.Path, status) }) }
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{
			WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
				return func(status int) {
					log(status)
					next(status)
				}
			},
			Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
				return func(data []byte) (int, error) {
					log(http.StatusOK)
					return next(data)
				}
			},
		}), r)
	})
}
