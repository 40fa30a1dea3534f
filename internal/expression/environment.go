// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

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
