// SPDX-License-Identifier: Apache-2.0

package jsonstream

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// names reads the texts in an array that is at key "names" of an object.
func names(text string) (found []string, err error) {
	d := New(strings.NewReader(text), 1000)
	err = d.Object(func(key string) error {
		if key != "names" {
			return d.Skip()
		}
		return d.Array(func() error {
			var name string
			err := d.Decode(&name)
			found = append(found, name)
			return err
		})
	})
	return found, err
}

func TestWhatIsRead(t *testing.T) {
	long := strings.Repeat("a", 2000)
	many := strings.Repeat(`"a",`, 1000)
	for name, tc := range map[string]struct {
		text string
		want int
		err  error
	}{
		"names":                     {`{"other": {"names": [1, {}]}, "names": ["a", "b"], "x": null}`, 2, nil},
		"none":                      {`{"names": null}`, 0, nil},
		"nothing":                   {`null`, 0, nil},
		"many, of more in all":      {`{"names": [` + many + `"b"], "x": [` + many + `1]}`, 1001, nil},
		"a long one":                {`{"names": ["` + long + `"]}`, -1, ErrTooLarge},
		"a long one that is let be": {`{"x": "` + long + `"}`, -1, ErrTooLarge},
		"a long key":                {`{"` + long + `": 1}`, -1, ErrTooLarge},
		"much space":                {`{"x":` + strings.Repeat(" ", 2000) + `1}`, -1, ErrTooLarge},
		"no object":                 {`["names"]`, -1, ErrOther},
		"no array":                  {`{"names": {}}`, -1, ErrOther},
		"too deep":                  {`{"x": ` + strings.Repeat("[", 2*maxDepth), -1, ErrOther},
		"an end too early":          {`{"names": ["a"`, -1, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := names(tc.text)
			if !errors.Is(err, tc.err) || err == nil && len(found) != tc.want {
				t.Errorf("%d found, %v", len(found), err)
			}
		})
	}
}
