// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

var errGeneratedTooLarge = errors.New("the templates generate more random values and certificates than can be kept")

// Generator remembers the generated values of a rendering. A rendering may take several rounds: see [Generator.again].
type Generator struct {
	earlier  job.Generated
	previous map[string][]*previousValue // by their call's key
	limit    int
	clock    func() time.Time

	decided map[string]*previousValue // by call, as the round before found; nil: make one
	made    map[string]string         // by call, in all rounds
	rounds  int

	// The rest is about this round:
	calls    []*call
	counts   map[string]int
	given    map[*previousValue]bool
	template []string // that is executed now, after those that include it
	time     string   // what now returned
	room     int      // bytes left
	full     bool
}

// NewGenerator returns a generator that has the values of earlier renderings, and takes so many bytes of values.
func NewGenerator(earlier job.Generated, limit int) *Generator {
	g := &Generator{
		earlier: earlier, limit: limit, clock: time.Now,
		decided: map[string]*previousValue{}, made: map[string]string{},
	}
	g.previous = previousValuesOf(earlier)
	g.restart()
	return g
}

// restart begins a round.
func (g *Generator) restart() {
	g.calls, g.counts, g.given, g.template = nil, map[string]int{}, map[*previousValue]bool{}, nil
	g.time, g.room = "", g.limit
}

// Funcs are the functions to put over sprig's.
func (g *Generator) Funcs() template.FuncMap {
	all := sprig.TxtFuncMap()
	funcs := g.timeFuncs(all)
	for name, fn := range remembered {
		funcs[name] = g.remember(name, fn, all[name])
	}
	funcs["keys"], funcs["values"] = sortedKeys, sortedValues
	return funcs
}

// remember wraps a function so that it returns the earlier value for the same call. The types
// stay those of run: templates pass sprig's unexported certificate from one function to another.
func (g *Generator) remember(name string, fn generating, run any) any {
	typ := reflect.TypeOf(run)
	return reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
		c := g.newCall(name, fn.password, args)
		c.evaluate = func(text string) (string, verdict) { return fn.evaluate(text, typ.Out(0), args) }
		if text, ok := g.recall(c); ok {
			value, err := decodeGenerated(typ.Out(0), text)
			if err != nil {
				panic(err) // evaluated before, or made by run
			}
			g.keep(c, text)
			results := []reflect.Value{value}
			if typ.NumOut() == 2 {
				results = append(results, reflect.Zero(typ.Out(1)))
			}
			return results
		}
		results := reflect.ValueOf(run).Call(args)
		if len(results) == 2 && !results[1].IsNil() {
			return results
		}
		text := encodeGenerated(results[0])
		g.made[c.id()] = text
		g.keep(c, text)
		return results
	}).Interface()
}

// keep notes a call's value. It panics when there is no room, which text/template turns into an
// error; the functions themselves mostly have no way to return one.
func (g *Generator) keep(c *call, text string) {
	g.take(len(c.key) + len(text))
	c.text = text
	g.calls = append(g.calls, c)
}

// Secrets returns the values of earlier renderings, and of this one.
func (g *Generator) Secrets() []string {
	return append(g.earlier.Secrets(), job.Generated(g.made).Secrets()...)
}

// Err says that there was no room for a value; nil if there was.
func (g *Generator) Err() error {
	if !g.full {
		return nil
	}
	return &failure.Error{Reason: job.ReasonOutputTooLarge, Err: errGeneratedTooLarge}
}

// IsRepeatable reports whether another rendering returns the same, as this one made nothing up.
func (g *Generator) IsRepeatable() bool { return len(g.made) == 0 }

func (g *Generator) take(size int) {
	g.room -= size
	if g.room < 0 {
		g.full = true
		panic(errGeneratedTooLarge)
	}
}

// newCall names a call by its function, its arguments, and its template.
func (g *Generator) newCall(name string, password bool, args []reflect.Value) *call {
	plain := make([]any, len(args))
	for i, arg := range args {
		plain[i] = arg.Interface()
	}
	text, err := json.Marshal(plain)
	if err != nil { // only for arguments that the function will refuse
		text = fmt.Appendf(nil, "%v", plain)
	}
	c := &call{args: string(text)}
	c.key = name + "/" + hex.EncodeToString(hashCall(name+c.args, password))
	c.template = strings.Join(g.template, "\n")
	at := c.template + "\n" + c.key
	g.counts[at]++
	c.position = token(at, strconv.Itoa(g.counts[at]))
	return c
}

// MadeSome reports whether the last round made values.
func (g *Generator) MadeSome() bool {
	return slices.ContainsFunc(g.calls, func(c *call) bool { return c.from == nil })
}
