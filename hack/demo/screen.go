// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// styles are ANSI codes.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// clearLine and what is below it.
const clearLine = "\r\x1b[J"

// screen is where the demo writes: a terminal, on which lines are written over, or a plain log.
type screen struct {
	file     *os.File
	terminal bool
	colored  bool
}

func newScreen(file *os.File) *screen {
	terminal := term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
	return &screen{file: file, terminal: terminal, colored: terminal && os.Getenv("NO_COLOR") == ""}
}

func (s *screen) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.file, format, args...) // whom to tell?
}

func (s *screen) paint(style style, text string) string {
	if !s.colored || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// width is that of the terminal, or of a common log.
func (s *screen) width() int {
	if width, _, err := term.GetSize(int(s.file.Fd())); s.terminal && err == nil && width > 0 {
		return width
	}
	return 120
}

// heading starts a part of the story.
func (s *screen) heading(title, text string) {
	s.printf("\n%s  %s\n\n", s.paint(bold, title), text)
}

// stage does one piece of work and says in one line what came of it, and how long it took.
func (s *screen) stage(what string, work func(*progress) (string, error)) error {
	if s.terminal {
		s.printf("  · %s", s.paint(dim, what+" ..."))
	}
	started := time.Now()
	progress := &progress{screen: s}
	result, err := work(progress)
	if s.terminal && !progress.used {
		s.printf(clearLine)
	}
	if err != nil {
		s.printf("  %s %s\n", s.paint(red, "✗"), what)
		return err
	}
	s.printf("  %s %-24s %-50s %s\n", s.paint(green, "✓"), what, result, s.paint(dim, seconds(time.Since(started))))
	return nil
}

// progress shows what a stage has to say, below its line.
type progress struct {
	screen *screen
	used   bool
	inLine bool
}

func (p *progress) Write(data []byte) (int, error) {
	if !p.used && p.screen.terminal {
		p.screen.printf("\n")
	}
	p.used = true
	for line := range bytes.Lines(data) {
		if !p.inLine {
			p.screen.printf("      ")
		}
		p.screen.printf("%s", line)
		p.inLine = !bytes.HasSuffix(line, []byte("\n"))
	}
	return len(data), nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%6.1f s", d.Seconds()) }
