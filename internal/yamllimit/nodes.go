// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// around is what JSON has around each scalar: quotes, a comma or colon, and what is longer there
// (true for y).
const around = 4

// measure adds up what a node becomes, as far as the limits go. Anchors come before their aliases.
func (l Limits) measure(node *yamlv3.Node, level int, anchors map[*yamlv3.Node]size) (size, error) {
	if level > l.Depth {
		return size{}, fmt.Errorf("nested deeper than %d", l.Depth)
	}
	if node.Kind == yamlv3.AliasNode {
		known, found := anchors[node.Alias]
		if !found {
			return size{}, fmt.Errorf("line %d: anchor %q contains itself", node.Line, node.Value)
		}
		return known, nil
	}
	sum := size{Values: 1, Written: inJSON(node.Value) + around}
	for _, child := range node.Content {
		part, err := l.measure(child, level+1, anchors)
		if err != nil {
			return size{}, err
		}
		part.Depth++
		if sum = sum.and(part); l.refuse(sum) != nil {
			return size{}, l.refuse(sum)
		}
	}
	if node.Anchor != "" {
		anchors[node] = sum
	}
	return sum, nil
}

// inJSON is how long a text is there, without its quotes.
func inJSON(text string) int {
	n := len(text)
	for i := range len(text) {
		n += escaped(text[i])
	}
	return n
}

// escaped is how much longer JSON makes a character: Go writes those of HTML as \u003c.
func escaped(c byte) int {
	switch {
	case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r':
		return 1
	case c < ' ' || c == '<' || c == '>' || c == '&':
		return 5
	}
	return 0
}
