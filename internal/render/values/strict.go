// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// strictFunc is put at the end of each action of a strict template. The name cannot be
// written in a template by accident.
const strictFunc = "chandlerDemandValue"

type missingValueError struct{ place string }

func (e *missingValueError) Error() string { return e.place + " has no value" }

// strictValue passes on the value that an action writes, if there is any. The text that stands for none comes from a string
// of the data. What the template itself says, in a comment maybe, makes nothing.
func strictValue(place string, value any) (any, error) {
	if text, _ := value.(string); value == nil || strings.Contains(text, noValue) {
		return nil, &missingValueError{place}
	}
	return value, nil
}

// demandValues makes each action that writes something fail when it has nothing to write.
// missingkey=error alone lets nulls and the results of functions such as index through.
func demandValues(t *template.Template) {
	for _, defined := range t.Templates() {
		if defined.Tree != nil && defined.Root != nil {
			demandInList(defined.Tree, defined.Root)
		}
	}
}

func demandInList(tree *parse.Tree, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			demandInAction(tree, n)
		case *parse.IfNode:
			demandInList(tree, n.List)
			demandInList(tree, n.ElseList)
		case *parse.WithNode:
			demandInList(tree, n.List)
			demandInList(tree, n.ElseList)
		case *parse.RangeNode:
			demandInList(tree, n.List)
			demandInList(tree, n.ElseList)
		}
	}
}

func demandInAction(tree *parse.Tree, action *parse.ActionNode) {
	pipe := action.Pipe
	if len(pipe.Decl) > 0 { // an assignment writes nothing
		return
	}
	place := fmt.Sprintf("%s:%d: %s", tree.ParseName, action.Line, pipe)
	pipe.Cmds = append(pipe.Cmds, &parse.CommandNode{
		NodeType: parse.NodeCommand,
		Pos:      action.Pos,
		Args: []parse.Node{
			parse.NewIdentifier(strictFunc).SetPos(action.Pos).SetTree(tree),
			&parse.StringNode{NodeType: parse.NodeString, Pos: action.Pos, Quoted: strconv.Quote(place), Text: place},
		},
	})
}
