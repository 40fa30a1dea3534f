// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
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
