// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// ReadAuditLog returns the requests in the file that Options.AuditLog names, in the order of their answers. A request
// may show a moment after its answer. A watch shows twice: with stage ResponseStarted when it starts, and when it ends.
func ReadAuditLog(path string) ([]auditv1.Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []auditv1.Event
	for decoder := json.NewDecoder(f); ; {
		var event auditv1.Event
		switch err := decoder.Decode(&event); {
		case err == nil:
			events = append(events, event)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the last line is being written
			return events, nil
		default:
			return nil, fmt.Errorf("reading the audit log %s: %w", path, err)
		}
	}
}
