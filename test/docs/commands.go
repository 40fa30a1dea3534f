// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// Command is a command line that a block of language "console" shows.
type Command struct {
	// Where the block begins, as in "docs/security.md:16".
	Where string
	// Text is what a shell runs, without the prompt. It may have several lines.
	Text string
	// Output is what the page shows of it, "" for nothing.
	Output string
}

// Commands are those that the block shows: what follows "$ ", and further lines after one that ends in a backslash, a
// pipe, or the "do" of a loop. All other lines are output of the command above them.
func (b Block) Commands() []Command {
	var commands []Command
	goesOn := false
	for line := range strings.Lines(b.Text) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			commands = append(commands, Command{Where: b.Where, Text: command})
		case len(commands) == 0:
			continue
		case goesOn:
			commands[len(commands)-1].Text += line
		default:
			commands[len(commands)-1].Output += line
		}
		end := strings.TrimSpace(line)
		goesOn = (isCommand || goesOn) && (strings.HasSuffix(end, `\`) || strings.HasSuffix(end, "|") || strings.HasSuffix(end, " do"))
	}
	return commands
}

// EachProgram calls a function with each program that a block of language "console" starts, on any page: with the path of
// the page, the command, and the program's words.
func EachProgram(t testing.TB, root string, do func(page string, shown Command, words []string)) {
	t.Helper()
	pages, err := Pages(root)
	must.Succeed(t, err)
	for _, page := range pages {
		blocks, err := page.Blocks("console")
		must.Succeed(t, err)
		for _, block := range blocks {
			for _, command := range block.Commands() {
				for _, words := range command.Programs() {
					do(page.Path, command, words)
				}
			}
		}
	}
}

// Programs are the words of each program that the command starts: what is between pipes, without comments, redirections and
// variables that are set before. Quotes are taken off.
func (c Command) Programs() [][]string {
	var programs [][]string
	var words []string
	end := func() {
		for len(words) > 0 && isAssignment(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 {
			programs = append(programs, words)
		}
		words = nil
	}
	for rest := strings.ReplaceAll(c.Text, "\\\n", " "); ; {
		rest = strings.TrimLeft(rest, " \n")
		switch {
		case rest == "" || rest[0] == '#':
			end()
			return programs
		case strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||"):
			end()
			rest = rest[2:]
		case rest[0] == '|' || rest[0] == ';':
			end()
			rest = rest[1:]
		case rest[0] == '>' || rest[0] == '<':
			_, rest = word(strings.TrimLeft(rest[1:], "> "))
		default:
			var next string
			next, rest = word(rest)
			words = append(words, next)
		}
	}
}

func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && strings.ToUpper(name) == name && !strings.HasPrefix(name, "-")
}

// word returns the first word of a text, without quotes, and what follows it.
func word(text string) (first, rest string) {
	var quote byte
	depth := 0 // of $( )
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == '(':
			depth++
			first += string(c)
		case quote == 0 && c == ')':
			depth--
			first += string(c)
		case quote == 0 && depth == 0 && strings.IndexByte(" \n|;<>", c) >= 0:
			return first, text[i:]
		default:
			first += string(c)
		}
	}
	return first, ""
}
