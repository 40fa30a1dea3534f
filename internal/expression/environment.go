// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"sync"
	"unicode"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/library"
)

// Bounds of all expressions of one object, so that compiling them takes 0.5 s of CPU at most.
const (
	maxTogether      = 256
	maxTogetherBytes = 64 << 10
	maxTogetherParts = 4000
	maxParts         = 400 // of one expression
)

// macroParts are what a macro counts for, as it becomes about so many nodes.
const macroParts = 10

var macros = sets.New("all", "exists", "existsOne", "exists_one", "filter", "map", "optFlatMap", "optMap")

// CheckTogether returns why the expressions of one object aren't compiled, "" if they are. It parses none.
func CheckTogether(expressions []string) string {
	var bytes, parts int
	for _, text := range expressions {
		bytes += len(text)
		if bytes <= maxTogetherBytes {
			parts += partsOf(text)
		}
	}
	switch {
	case len(expressions) > maxTogether:
		return fmt.Sprintf("it has %d expressions, at most %d", len(expressions), maxTogether)
	case bytes > maxTogetherBytes:
		return fmt.Sprintf("its expressions have %d bytes together, at most %d", bytes, maxTogetherBytes)
	case parts > maxTogetherParts:
		return fmt.Sprintf("its expressions have %d words and signs together, a macro such as all() being %d, at most %d; use simpler ones",
			parts, macroParts, maxTogetherParts)
	}
	return ""
}

// partsOf counts words and signs, in literal texts as well. An expression has hardly more nodes.
func partsOf(text string) (parts int) {
	word := -1 // where one begins
	for at, r := range text + " " {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			if word < 0 {
				word = at
				parts++
			}
			continue
		case !unicode.IsSpace(r):
			parts++
		}
		if word >= 0 && macros.Has(text[word:at]) {
			parts += macroParts
		}
		word = -1
	}
	return parts
}

// Limits of the syntax of one expression. Checking the types takes time with the square of the nodes.
const (
	maxNesting = 32
	maxNodes   = 400
)

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ParserRecursionLimit(maxNesting), cel.ExpressionNodeLimit(maxNodes),
		ext.Strings(ext.StringsVersion(2)),
		cel.OptionalTypes(),
		library.Lists(), library.URLs(), library.Quantity(), library.SemverLib(),
		// As in library.Regex, which would put its own searches in the place of those that are bounded.
		cel.Function("find", cel.MemberOverload("string_find_string", []*cel.Type{cel.StringType, cel.StringType}, cel.StringType)),
		cel.Function("findAll",
			cel.MemberOverload("string_find_all_string", []*cel.Type{cel.StringType, cel.StringType}, cel.ListType(cel.StringType)),
			cel.MemberOverload("string_find_all_string_int", []*cel.Type{cel.StringType, cel.StringType, cel.IntType}, cel.ListType(cel.StringType))),
	)
})

// notOffered are functions whose result can be far larger than their arguments, and the way out.
var notOffered = map[string]string{
	"replace": "compare the parts of the text with startsWith, endsWith, contains or matches",
	"join":    "look at the elements with exists or all",
	"format":  "compare the values themselves, or put texts together with +",
}

// checkSyntax returns why a parsed expression isn't compiled, nil if it is.
func checkSyntax(parsed *ast.AST) (refused error) {
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.StructKind:
			refused = fmt.Errorf("messages such as %s{} aren't offered; use a map", e.AsStruct().TypeName())
		case ast.CallKind:
			name := e.AsCall().FunctionName()
			if wayOut, found := notOffered[name]; found {
				refused = fmt.Errorf("the function %s isn't offered, as its result can be far larger than its arguments: %s", name, wayOut)
			}
		}
	}))
	return refused
}
