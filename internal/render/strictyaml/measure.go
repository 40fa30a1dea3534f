// SPDX-License-Identifier: Apache-2.0

package strictyaml

// Measure counts scalars, lists and maps, and the levels of these.
func Measure(value any) (count, depth int) {
	add := func(part any) {
		n, levels := Measure(part)
		count, depth = count+n, max(depth, levels)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			add(v)
		}
	case []any:
		for _, v := range value {
			add(v)
		}
	}
	return count + 1, depth + 1
}
