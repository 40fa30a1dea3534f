// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/cluster-chandler/chandler/internal/message"
)

// maxLogged is how long an error or another value of a log line may be, in bytes: workload clusters say what they
// like. maxStack is how long a stack may be.
const maxLogged, maxStack = 2 << 10, 64 << 10

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

// bodiless is a sink that logs the size of a body, and no headers. Long values lose their middle.
type bodiless struct{ logr.LogSink }

// Init does nothing: the sink within knows of its logger already.
func (*bodiless) Init(logr.RuntimeInfo) {}

func (b *bodiless) Enabled(level int) bool { return b.LogSink.Enabled(level) }

func (b *bodiless) Info(level int, text string, keysAndValues ...any) {
	b.LogSink.Info(level, message.Shorten(text, maxLogged), leaveOut(keysAndValues)...)
}

func (b *bodiless) Error(err error, text string, keysAndValues ...any) {
	if err != nil && len(err.Error()) > maxLogged {
		err = errors.New(message.Shorten(err.Error(), maxLogged))
	}
	b.LogSink.Error(err, message.Shorten(text, maxLogged), leaveOut(keysAndValues)...)
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

// leaveOut returns the keys with the values as they are logged.
func leaveOut(keysAndValues []any) []any {
	keysAndValues = slices.Clone(keysAndValues)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		value := &keysAndValues[i+1]
		switch key := keysAndValues[i]; key {
		case "body":
			*value = fmt.Sprintf("%d bytes, which aren't logged", len(fmt.Sprint(*value)))
		case "headers":
			*value = "they aren't logged"
		default:
			*value = shortened(key, *value)
		}
	}
	return keysAndValues
}

// shortened returns a value that is a text or an error with at most as many bytes as are logged.
func shortened(key, value any) any {
	limit := maxLogged
	if key == "stack" {
		limit = maxStack
	}
	switch v := value.(type) {
	case string:
		return message.Shorten(v, limit)
	case error:
		if text := v.Error(); len(text) > limit {
			return message.Shorten(text, limit)
		}
	}
	return value
}
