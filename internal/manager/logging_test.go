// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2/textlogger"
)

// TestBodiesAreNotLogged logs as client-go does at its highest verbosity.
func TestBodiesAreNotLogged(t *testing.T) {
	var written bytes.Buffer
	log := withoutBodies(textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(&written))))
	for _, l := range []logr.Logger{log, log.V(10), log.WithName("n"), log.WithValues("body", "sentinel"), log.WithCallDepth(1)} {
		l.Info("Response Body", "body", "sentinel")
		l.Info("Response", "status", "200 OK", "headers", map[string]string{"Warning": "sentinel"})
		l.Error(nil, "Request Body", "body", "sentinel")
	}
	if strings.Contains(written.String(), "sentinel") {
		t.Error(written.String())
	}
	for _, part := range []string{`body="8 bytes, which aren't logged"`, `status="200 OK"`, "logging_test.go:"} {
		if !strings.Contains(written.String(), part) {
			t.Errorf("no %s in %s", part, written.String())
		}
	}
}

// TestLogLinesAreShort logs what a workload cluster may have said, however long it is.
func TestLogLinesAreShort(t *testing.T) {
	words := "first words " + strings.Repeat("of the server ", 1<<18) + " last words"
	for title, write := range map[string]func(logr.Logger){
		"an error":          func(log logr.Logger) { log.Error(errors.New(words), "it failed") },
		"an error as value": func(log logr.Logger) { log.Info("it failed", "err", errors.New(words)) },
		"a value":           func(log logr.Logger) { log.WithValues("said", words).Info("it failed") },
		"a message":         func(log logr.Logger) { log.Info(words) },
	} {
		var written bytes.Buffer
		write(withoutBodies(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&written)))))
		if line := written.String(); len(line) > 3<<10 || !strings.Contains(line, "first words") || !strings.Contains(line, "last words") {
			t.Errorf("%s: %d bytes: %.200s", title, len(line), line)
		}
	}
}
