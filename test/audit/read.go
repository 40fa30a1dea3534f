// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read returns the requests in the file that controlplane.Options.AuditLog names, in the order of their answers. A request
// may show a moment after its answer. A watch shows twice: with stage ResponseStarted when it starts, and when it ends.
func Read(file string) ([]Event, error) {
	var events []Event
	err := read(file, 0, func(e *Event, _ int64) bool {
		events = append(events, *e)
		return true
	})
	return events, err
}

// read calls use for the requests behind an offset, each with the offset behind it, until it wants no more of them.
func read(file string, begin int64, use func(e *Event, end int64) (more bool)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return err
	}
	end := begin
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the last line is being written
		}
		if err != nil {
			return err
		}
		cut := end == begin && begin > 0 // the offset may be in the midst of a line
		end += int64(len(line))
		var e Event
		switch err := json.Unmarshal(line, &e); {
		case err != nil && !cut:
			return fmt.Errorf("reading the audit log %s: %w", file, err)
		case err == nil && !use(&e, end):
			return nil
		}
	}
}
