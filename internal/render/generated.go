// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// Generated are the values that a rendering made up: random strings, keys, certificates, the
// time. Given to the next rendering, they come out again where they were, so that what has not
// changed stays byte for byte. A key says which call made a value and where it came out
// ([former]). The values are secrets: never log them.
type Generated map[string]string

// RenewAt is the time from which a rendering replaces the first of the certificates: after two
// thirds of its life. It is zero if there are none. Whoever keeps Generated has to render again then.
func RenewAt(values Generated) time.Time {
	var first time.Time
	for key, text := range values {
		if known, ok := parseFormer(key, text); ok && known.unused > 0 {
			continue
		}
		if at := renewAt(text); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Secrets returns the values as templates have them: of a certificate, its parts.
func (g Generated) Secrets() []string {
	var all []string
	for key, text := range g {
		var parts map[string]string
		switch {
		case key == nowKey:
		case json.Unmarshal([]byte(text), &parts) == nil:
			all = slices.AppendSeq(all, maps.Values(parts))
		default:
			all = append(all, text)
		}
	}
	return all
}

// minRenewal is the least time between two renewals, each of which is an upgrade.
const minRenewal = time.Hour

// renewAt is zero for what is not renewed, and for what is not a certificate as sprig's functions return it.
func renewAt(text string) time.Time {
	var pair struct{ Cert string }
	if json.Unmarshal([]byte(text), &pair) != nil {
		return time.Time{}
	}
	block, _ := pem.Decode([]byte(pair.Cert))
	if block == nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	if life <= minRenewal {
		return time.Time{} // it is over before the next renewal, however often it is renewed
	}
	return cert.NotBefore.Add(max(life/3*2, minRenewal))
}

var errGeneratedTooLarge = errors.New("the templates generate more random values and certificates than can be kept")

// call is one call of a generating function.
type call struct {
	// key is the function's name and a hash of its arguments.
	key string
	// position tells it from other calls with this key: a hash of the template that it is in,
	// those that included that one, and its number among the calls there.
	position string
	template string // and those that include it
	number   int    // among the calls with this key in all templates
	args     string
	text     string
	from     *former // whose value it was given; nil if it made one
	within   bool    // it came out in what other calls made of it alone
	judge    func(text string) (string, verdict)
	places
}

func (c *call) id() string { return c.key + "/" + c.position }

// generator is the memory of one rendering. A rendering may take several rounds: see [generator.again].
type generator struct {
	earlier Generated
	formers map[string][]*former // by their call's key
	limit   int
	clock   func() time.Time

	decided map[string]*former // by call, as the round before found; nil: make one
	made    map[string]string  // by call, in all rounds
	rounds  int

	// Of this round:
	calls    []*call
	counts   map[string]int
	given    map[*former]bool
	template []string // that is executed now, after those that include it
	time     string   // what now returned
	room     int      // bytes left
	full     bool
}

func newGenerator(earlier Generated, limit int) *generator {
	g := &generator{
		earlier: earlier, limit: limit, clock: time.Now,
		decided: map[string]*former{}, made: map[string]string{},
	}
	g.formers = formersOf(earlier)
	g.restart()
	return g
}

// restart begins a round.
func (g *generator) restart() {
	g.calls, g.counts, g.given, g.template = nil, map[string]int{}, map[*former]bool{}, nil
	g.time, g.room = "", g.limit
}

// funcs are the functions to put over sprig's.
func (g *generator) funcs() template.FuncMap {
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
func (g *generator) remember(name string, fn generating, run any) any {
	typ := reflect.TypeOf(run)
	return reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
		c := g.newCall(name, fn.password, args)
		c.judge = func(text string) (string, verdict) { return fn.judge(text, typ.Out(0), args) }
		if text, ok := g.recall(c, fn.password); ok {
			value, err := decodeGenerated(typ.Out(0), text)
			if err != nil {
				panic(err) // judged before, or made by run
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

// due reports whether a certificate is to be made anew. One that was read from a live object is taken
// over first, as it is; the next revision renews it.
func (g *generator) due(f *former) bool {
	at := renewAt(f.text)
	return !f.live && !at.IsZero() && !g.clock().Before(at)
}

// keep notes a call's value. It panics when there is no room, which text/template turns into an
// error; the functions themselves mostly have no way to return one.
func (g *generator) keep(c *call, text string) {
	g.take(len(c.key) + len(text))
	c.text = text
	g.calls = append(g.calls, c)
}

// secrets returns the values of earlier renderings, and of this one.
func (g *generator) secrets() []string {
	return append(g.earlier.Secrets(), Generated(g.made).Secrets()...)
}

// err says that there was no room for a value; nil if there was.
func (g *generator) err() error {
	if !g.full {
		return nil
	}
	return &Error{Reason: ReasonOutputTooLarge, Err: errGeneratedTooLarge}
}

// isRepeatable reports whether another rendering returns the same, as this one made nothing up.
func (g *generator) isRepeatable() bool { return len(g.made) == 0 }

func (g *generator) take(size int) {
	g.room -= size
	if g.room < 0 {
		g.full = true
		panic(errGeneratedTooLarge)
	}
}

// newCall names a call by its function, its arguments, and its template.
func (g *generator) newCall(name string, password bool, args []reflect.Value) *call {
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
	g.counts[c.key]++
	c.number = g.counts[c.key]
	c.template = strings.Join(g.template, "\n")
	at := c.template + "\n" + c.key
	g.counts[at]++
	c.position = token(at, strconv.Itoa(g.counts[at]))
	return c
}

func hashCall(input string, password bool) []byte {
	if password { // about 2ms; the arguments are no easier to guess than from bcrypt's own hash
		if slow, err := pbkdf2.Key(sha256.New, input, []byte("chandler/generated"), 10_000, 16); err == nil {
			return slow
		}
	}
	sum := sha256.Sum256([]byte(input))
	return sum[:16]
}

func encodeGenerated(value reflect.Value) string {
	if value.Kind() == reflect.String {
		return value.String()
	}
	text, err := json.Marshal(value.Interface())
	if err != nil {
		panic(err) // ints and structs of strings only
	}
	return string(text)
}

func decodeGenerated(typ reflect.Type, text string) (reflect.Value, error) {
	value := reflect.New(typ)
	if typ.Kind() == reflect.String {
		value.Elem().SetString(text)
		return value.Elem(), nil
	}
	err := json.Unmarshal([]byte(text), value.Interface())
	return value.Elem(), err
}
