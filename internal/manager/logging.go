// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// setupLogging makes the process log as the flags say, but for what is in requests and
// their answers.
func setupLogging(o *Options) error {
	if err := logsv1.ValidateAndApply(o.logs, nil); err != nil {
		return err
	}
	log := klog.Background()
	settings := []klog.LoggerOption{klog.ContextualLogger(true)}
	if writer, ok := log.GetSink().(textlogger.KlogBufferWriter); ok {
		settings = append(settings, klog.WriteKlogBuffer(writer.WriteKlogBuffer))
	}
	klog.SetLoggerWithOptions(withoutBodies(log), settings...)
	return nil
}

// withoutBodies leaves out the bodies and headers that client-go logs from --v=8 on, at
// any verbosity. Secrets are among them, of the management cluster and of others.
// Warnings of policies may quote what is in an object.
func withoutBodies(log logr.Logger) logr.Logger {
	return log.WithSink(&bodiless{log.WithCallDepth(1).GetSink()})
}

// bodiless is a sink that logs the size of a body, and no headers.
type bodiless struct{ logr.LogSink }

// Init does nothing: the sink within knows of its logger already.
func (*bodiless) Init(logr.RuntimeInfo) {}

func (b *bodiless) Enabled(level int) bool { return b.LogSink.Enabled(level) }

func (b *bodiless) Info(level int, message string, keysAndValues ...any) {
	b.LogSink.Info(level, message, leaveOut(keysAndValues)...)
}

func (b *bodiless) Error(err error, message string, keysAndValues ...any) {
	b.LogSink.Error(err, message, leaveOut(keysAndValues)...)
}

func (b *bodiless) WithValues(keysAndValues ...any) logr.LogSink {
	return &bodiless{b.LogSink.WithValues(leaveOut(keysAndValues)...)}
}

func (b *bodiless) WithName(name string) logr.LogSink {
	return &bodiless{b.LogSink.WithName(name)}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (b *bodiless) WithCallDepth(depth int) logr.LogSink {
	if within, ok := b.LogSink.(logr.CallDepthLogSink); ok {
		return &bodiless{within.WithCallDepth(depth)}
	}
	return b
}

func leaveOut(keysAndValues []any) []any {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		switch keysAndValues[i] {
		case "body":
			keysAndValues = slices.Clone(keysAndValues)
			keysAndValues[i+1] = fmt.Sprintf("%d bytes, which aren't logged", len(fmt.Sprint(keysAndValues[i+1])))
		case "headers":
			keysAndValues = slices.Clone(keysAndValues)
			keysAndValues[i+1] = "they aren't logged"
		}
	}
	return keysAndValues
}
