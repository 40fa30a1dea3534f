// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// errMore says that objects would be left out, which would go unnoticed.
var errMore = errors.New(`more follows the end of a document ("..."), and would be left out; put a line of "---" before it, and end lines with a line feed`)

// CheckSingle refuses a text that has more than one document. Texts are taken apart at
// lines of "---". Parsers read each part up to the end of its first document.
// Objects behind that would be left out without a word, and pruned. Comments may follow.
func CheckSingle(text []byte) error {
	if !bytes.Contains(text, []byte("...")) && !bytes.Contains(text, []byte("---")) {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && n > 0, err == nil && n > 0 && !isNull(&node):
			return errMore
		case err != nil:
			return err
		}
	}
}

// isNull reports whether a document has no content but comments.
func isNull(node *yamlv3.Node) bool {
	for node.Kind == yamlv3.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	return node.Kind == yamlv3.ScalarNode && node.ShortTag() == "!!null"
}

// kustomizeSeparator matches the lines at which kustomize takes files apart. At the end of a file it
// sees no line.
var kustomizeSeparator = regexp.MustCompile(`\n---.*\n`)

// CheckSingles is CheckSingle for a file with objects, as kustomize takes it apart.
func CheckSingles(data []byte) error {
	for _, text := range kustomizeSeparator.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), -1) {
		if err := CheckSingle([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}
