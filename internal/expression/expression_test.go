// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

func TestHolds(t *testing.T) {
	wait := &addonsv1.ObjectsCondition{
		Objects:    []addonsv1.ConditionObject{{Key: "agents", APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cilium"}},
		Expression: "agents.status.numberReady == agents.status.desiredNumberScheduled",
	}
	condition, err := expression.Of(wait)
	must.Succeed(t, err)
	agents := func(ready int64) map[string]any {
		return map[string]any{"agents": map[string]any{"status": map[string]any{"numberReady": ready, "desiredNumberScheduled": int64(2)}}}
	}
	for ready, want := range map[int64]bool{1: false, 2: true} {
		if got, err := condition.Holds(t.Context(), agents(ready)); err != nil || got != want {
			t.Errorf("with %d ready: %t, %v", ready, got, err)
		}
	}
	if got, err := condition.Holds(t.Context(), map[string]any{"agents": map[string]any{}}); got || err == nil || !strings.HasSuffix(err.Error(), ": status") {
		t.Errorf("without a status: %t, %v; want an error that names it", got, err)
	}
	endless := &addonsv1.ObjectsCondition{Expression: "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, a+b+c+d+e+f+g > 0)))))))"}
	costly, err := expression.Of(endless)
	must.Succeed(t, err)
	if _, err := costly.Holds(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "too many steps") {
		t.Errorf("a costly expression ends with %v, want the limit of its steps", err)
	}
}

// Bounds of one expression, and of the process that has evaluated many.
const (
	mostTime     = time.Second / 2
	mostMemory   = 110 << 20
	mostResident = 150 // MiB
)

// hostileObjects are as large as an API server answers, and of forms that are costly to look at.
func hostileObjects() map[string]any {
	empty, keys, numbers := make([]any, 150_000), map[string]any{}, make([]any, 60_000)
	for i := range empty {
		empty[i] = []any{}
	}
	for i := range 30_000 {
		keys[fmt.Sprint("key-", i)] = map[string]any{"name": "a"}
	}
	for i := range numbers {
		numbers[i] = int64(i)
	}
	text := func(part string, bytes int) string { return strings.Repeat(part, bytes/len(part)) }
	return map[string]any{
		"a": map[string]any{
			"huge": text("a", 4<<20), "large": text("a", 1_000_000), "zeros": text("\x00", 1_000_000), "wide": text("é", 1_000_000), "small": "1.2.3",
		},
		"b": map[string]any{"empty": empty, "keys": keys, "numbers": numbers, "few": numbers[:300]},
	}
}

// nested returns an expression in a macro in a macro and so on, each over ten elements.
func nested(depth int, macro, inner string) string {
	for i := range depth {
		inner = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].%s(x%d, %s)", macro, i, inner)
	}
	return inner
}

func costlyExpressions() []string {
	long := strings.Repeat("a", 1500)
	double := func(first, step string, times int, last string) string {
		return first + strings.Repeat(step, times) + last
	}
	all := []string{
		double("'a'", ".replace('a','aaaaaaaaaa')", 9, ".size() > 0"), "'%.900000000f'.format([1.0]).size() > 0", "[1,2,3].map(i, 'a').join('b').size() > 0",
		nested(7, "all", "true"), nested(6, "all", "('"+long+"').indexOf('b') < 0"), nested(4, "matches('a') || all", "true"),
		nested(5, "all", "'"+long+"'.matches('(a|aa|aaa)*b') || true"), nested(4, "all", "timestamp('"+long+"') == null || true"),
		nested(5, "map", "["+strings.Repeat("1,", 60)+"1]") + ".size() > 0", nested(5, "map", "{"+strings.Repeat("1:1,", 40)+"2:1}") + ".size() > 0",
		nested(4, "map", "'"+long+"' + 'b'") + ".size() > 0", nested(5, "all", "timestamp(0).getHours('Europe/Berlin') >= 0"),
		nested(5, "all", "timestamp(0).getHours('Europe/"+long[:30]+"\t/Berlin') >= 0"),
		double("['a']", ".map(x,x+x)", 24, ".size() > 0"), double("[1]", ".map(x,[x,x])", 12, " == "+double("[1]", ".map(x,[x,x])", 12, "")),
		double("[b'a']", ".map(x,x+x)", 24, ".size() > 0"), double("[[1,2]]", ".map(x,x+x)", 24, ".size() > 0"),
		double("optional.of('a')", ".optMap(x,x+x)", 20, ".hasValue()"), double("a", "[a]", 240, " == 1"), double("", "[", 120, strings.Repeat("]", 120)+" == []"),
		double("", "a"+strings.Repeat("[a]", 30)+"&&", 42, "true"), double("", "size("+strings.Repeat("dyn(", 24)+"a"+strings.Repeat(")", 24)+")>0&&", 30, "true"),
		double("", "a.map(x,a.map(y,x[y]))==a&&", 100, "true"), double("", "!", 4000, "true"), double("", "-", 4000, "1 > 0"), double("0", "+1", 2000, " > 0"),
		double("", "true?true:", 240, "true"), double("", "(", 4000, ""), double("", "a ?", 1300, ""), double("", "{a:", 1300, ""), double("", "a.", 2000, ""),
		"'a'.matches('" + strings.Repeat(`\\pL{1000}`, 25) + "')", "quantity('1e99999999').add(quantity('1')).isInteger()", "isQuantity('1e-99999999')",
		"b.empty == b.empty", "1 in b.empty", "b.keys == b.keys", "b.keys.map(x, x).size() > 0", "b.numbers.map(x, x).size() > 0", "b.few.all(x, b.few.all(y, x != y || true))",
		"b.numbers.sum() > 0", "b.empty.indexOf([1]) < 0", "b.keys.all(x, b.keys.exists(y, false))", double("", "a[a.huge]==1||", 70, "true"),
	}
	for _, text := range []string{"a.huge", "a.large", "a.zeros", "a.wide"} {
		for _, use := range []string{
			"%s.contains('b')", "%s.matches('(a|aa)*b')", "%s.find('b') == ''", "%s.findAll('').size() > 0", "%s.split('').size() > 0", "%s.lowerAscii() == ''", "%s.indexOf('b') < 0",
			"%s.charAt(9) == ''", "%s.substring(9) == ''", "strings.quote(%s) == ''", "timestamp(%s) == null", "duration(%s) == null", "int(%s) == 1", "url(%s).getHost() == ''", "isSemver(%s)",
			"quantity(%s) == null", "%s + %[1]s == ''", "%s in {'a': 1}", "{%s: 1} == {}", "timestamp(0).getHours(%s) == 1", "bytes(%s) == b''", "%s.trim() == ''",
		} {
			all = append(all, fmt.Sprintf(use, text)+" || true")
		}
	}
	return all
}

// grow returns a random expression of a grammar of all that the environment offers.
func grow(r *rand.Rand, depth int) string {
	leaves := []string{"a.huge", "a.large", "a.zeros", "a.wide", "a.small", "b.empty", "b.keys", "b.numbers", "b.few", "b", "x", "y", "1", "'a'", "2.5", "true", "null", "b'a'", "a[a.small]", "0u", "a.?small"}
	if depth <= 0 {
		return leaves[r.IntN(len(leaves))]
	}
	next := func() string { return grow(r, depth-1-r.IntN(2)) }
	forms := []string{
		"(%s + %s)", "(%s == %s)", "(%s in %s)", "(%s && %s)", "(%s || %s)", "(%s ? %s : %s)", "[%s, %s, %s]", "{%s: %s}", "%s[%s]", "!%s", "-%s", "(%s < %s)", "(%s * %s)", "(%s %% %s)",
		"dyn(%s).map(x, %s)", "dyn(%s).all(x, %s)", "dyn(%s).exists(y, %s)", "dyn(%s).filter(x, %s)", "dyn(%s).exists_one(y, %s)", "dyn(%s).map(x, %s, %s)", "optional.of(%s).optMap(x, %s)", "%s.?b.orValue(%s)",
		"size(dyn(%s))", "string(dyn(%s))", "bytes(dyn(%s))", "int(dyn(%s))", "double(dyn(%s))", "timestamp(dyn(%s))", "duration(dyn(%s))", "type(%s)", "dyn(%s)",
		"dyn(%s).contains(dyn(%s))", "dyn(%s).startsWith(dyn(%s))", "dyn(%s).split(dyn(%s))", "dyn(%s).indexOf(dyn(%s))", "dyn(%s).lastIndexOf(dyn(%s))", "dyn(%s).lowerAscii()", "dyn(%s).upperAscii()", "dyn(%s).trim()",
		"dyn(%s).charAt(1)", "dyn(%s).substring(1)", "strings.quote(dyn(%s))", "dyn(%s).matches('(a|b)*c')", "dyn(%s).find('a*')", "dyn(%s).findAll('')", "dyn(%s).replace(%s, %s)", "dyn(%s).join(%s)",
		"dyn(%s).sum()", "dyn(%s).max()", "dyn(%s).isSorted()", "quantity(dyn(%s))", "isQuantity(dyn(%s))", "semver(dyn(%s))", "url(dyn(%s)).getHost()", "isURL(dyn(%s))", "timestamp(0).getHours(dyn(%s))",
	}
	form := forms[r.IntN(len(forms))]
	parts := make([]any, strings.Count(form, "%s"))
	for i := range parts {
		parts[i] = next()
	}
	return fmt.Sprintf(form, parts...)
}

// expectBounded fails the test if an expression took more than one may, of memory even if it was freed meanwhile.
func expectBounded(t testing.TB, spent cost.Cost, text string) {
	t.Helper()
	spent.Expect(t, mostTime, mostMemory) // which allows for the race detector
	if spent.Allocated > mostMemory {
		t.Errorf("allocated %d MiB", spent.Allocated>>20)
	}
	if t.Failed() {
		t.Fatalf("it was %q", text)
	}
}

func TestExpressionsAreBounded(t *testing.T) {
	long.InCI(t)
	objects, seed := hostileObjects(), rand.Uint64()
	t.Logf("seed %d", seed)
	r, all := rand.New(rand.NewPCG(seed, 0)), costlyExpressions()
	for range 1000 {
		all = append(all, "dyn(dyn([0,1,2,3,4,5,6,7,8,9]).map(y, dyn([0,1,2]).map(x, "+grow(r, 1+r.IntN(7))+"))) != null")
	}
	compiled := 0
	var slowest time.Duration
	var largest uint64
	for _, text := range all {
		spent := cost.Quick(func() {
			condition := &addonsv1.ObjectsCondition{Expression: text, Objects: []addonsv1.ConditionObject{{Key: "a"}, {Key: "b"}}}
			program, err := expression.Of(condition)
			if err != nil {
				return
			}
			compiled++
			_, _ = program.Holds(t.Context(), objects)
		})
		slowest, largest = max(slowest, spent.Work), max(largest, spent.Allocated)
		expectBounded(t, spent, text)
	}
	if compiled < len(all)/4 {
		t.Errorf("only %d of %d expressions could be evaluated", compiled, len(all))
	}
	resident, err := process.Memory(os.Getpid(), process.Resident)
	if err != nil || resident > mostResident && !cost.RaceDetector() {
		t.Errorf("%v MiB are resident after all of them, %v", resident, err)
	}
	t.Logf("%d of %d were evaluated; at most %s of CPU and %d MiB; %v MiB are resident", compiled, len(all), slowest, largest>>20, resident)
}
