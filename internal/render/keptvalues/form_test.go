// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// generating has a call of each function whose values a record keeps.
var generating = map[string]string{
	"randAlphaNum":             `randAlphaNum 12`,
	"randAlpha":                `randAlpha 12`,
	"randNumeric":              `randNumeric 12`,
	"randAscii":                `randAscii 20`,
	"randBytes":                `randBytes 12`,
	"randInt":                  `randInt 1000000000 2000000000`,
	"uuidv4":                   `uuidv4`,
	"shuffle":                  `shuffle "abcdefghijklmnopqrstuvwxyzäöü"`,
	"genPrivateKey":            `genPrivateKey "ecdsa"`,
	"genCA":                    `genCA "a" 10`,
	"genCAWithKey":             `genCAWithKey "a" 10 .Values.key`,
	"genSelfSignedCert":        `genSelfSignedCert "a" (list "10.0.0.1") (list "a.b") 10`,
	"genSelfSignedCertWithKey": `genSelfSignedCertWithKey "a" nil nil 10 .Values.key`,
	"genSignedCert":            `genSignedCert "b" nil (list "b.c") 10 (buildCustomCert .Values.caCert .Values.caKey)`,
	"genSignedCertWithKey":     `genSignedCertWithKey "b" nil nil 10 (buildCustomCert .Values.caCert .Values.caKey) .Values.key`,
	"bcrypt":                   `bcrypt "password"`,
	"htpasswd":                 `htpasswd "user" "password"`,
	"encryptAES":               `encryptAES "key" "plain text"`,
	"now":                      `now | toString`,
}

func isCert(function string) bool {
	return strings.HasSuffix(function, "CA") || strings.Contains(function, "C") && strings.Contains(function, "gen")
}

// value writes what a call returns into an action.
func value(function string) string {
	if isCert(function) {
		return `{{ $v := ` + generating[function] + ` }}{{ print $v.Cert $v.Key | trim }}`
	}
	return `{{ ` + generating[function] + ` }}`
}

// quoted is value, as a string of YAML.
func quoted(function string) string {
	return strings.NewReplacer(" | trim }}", " | quote }}").Replace(strings.Replace(value(function), generating[function]+" }}", generating[function]+map[bool]string{false: " | quote"}[isCert(function)]+" }}", 1))
}

// bench renders charts with keys and a CA for those calls that need some.
type bench struct {
	*render.Renderer
	values map[string]any
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{Renderer: rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout = 2, time.Minute })}
	made := b.render(t, object("ConfigMap", "a", "data:\n  key: {{ genPrivateKey \"ecdsa\" | quote }}\n  {{- $ca := genCA \"ca\" 100 }}\n  cert: {{ $ca.Cert | b64enc }}\n  caKey: {{ $ca.Key | b64enc }}\n"), nil)
	data := made.Objects[0].Object["data"].(map[string]any)
	b.values = map[string]any{"key": data["key"], "caCert": data["cert"], "caKey": data["caKey"]}
	return b
}

func (b *bench) request(text string, earlier job.Generated) job.Chart {
	req := rendering.ChartJob(rendering.ChartWith(text))
	req.Release.Namespace, req.Release.Upgrade = "apps", true
	req.Values, req.Generated = b.values, earlier
	return req
}

func (b *bench) render(t testing.TB, text string, earlier job.Generated) *job.Result {
	t.Helper()
	result, err := b.Chart(t.Context(), b.request(text, earlier))
	must.Succeed(t, err)
	return result
}

func object(kind, name, fields string) string {
	return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + fields
}

// tampered returns Generated with another text for the only value.
func tampered(t testing.TB, generated job.Generated, text string) job.Generated {
	t.Helper()
	if len(generated) != 1 {
		t.Fatalf("%d values, want 1", len(generated))
	}
	changed := job.Generated{}
	for key := range generated {
		changed[key] = text
	}
	return changed
}

func textOf(generated job.Generated) string {
	for _, text := range generated {
		return text
	}
	return ""
}

func pair(cert, key string) string {
	data, err := json.Marshal(map[string]string{"Cert": cert, "Key": key})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// otherForms returns texts that a function doesn't return in place of a good one.
func otherForms(function, good string) []string {
	forms := []string{"", "{", "null", " " + good, good + " ", good + "\n\n", good + "\x00", good + good, "x\nintruder: true", good + "\n---\nkind: Pod\n", `x", "intruder": "true`, "\xff\xfe" + good}
	wrapped := func(text string) string { return text[:len(text)/2] + "\n" + text[len(text)/2:] }
	switch {
	case isCert(function):
		var made struct{ Cert, Key string }
		if err := json.Unmarshal([]byte(good), &made); err != nil {
			panic(err)
		}
		for _, cert := range []string{"", "intruder: true", made.Cert + "intruder: true\n", "intruder: true\n" + made.Cert, made.Key, strings.Replace(made.Cert, "CERTIFICATE-----\n", "CERTIFICATE-----\nintruder: true\n\n", 1),
			strings.ReplaceAll(made.Cert, "CERTIFICATE", "INTRUDER"), strings.Repeat(made.Cert, 17), strings.ReplaceAll(made.Cert, "\n", "\r\n"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
			forms = append(forms, pair(cert, made.Key))
		}
		for _, key := range []string{"", "intruder: true", made.Key + "intruder: true\n", "intruder: true\n" + made.Key, made.Key + made.Key, made.Cert} {
			forms = append(forms, pair(made.Cert, key))
		}
	case function == "genPrivateKey":
		forms = append(forms, "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", "intruder: true\n"+good, good+"intruder: true\n", strings.ReplaceAll(good, "EC PRIVATE KEY", "INTRUDER"),
			strings.Replace(good, "KEY-----\n", "KEY-----\nintruder: true\n\n", 1))
	case function == "randInt":
		forms = append(forms, "999999999", "2000000000", "-1", "1e9", "0x10", `"1500000000"`)
	case function == "uuidv4":
		forms = append(forms, strings.ToUpper(good)+"G", "urn:uuid:"+good, "{"+good+"}", good[:14]+"1"+good[15:])
	case function == "randBytes", function == "encryptAES":
		forms = append(forms, wrapped(good), base64.StdEncoding.EncodeToString([]byte("short")), strings.Repeat("!", len(good)))
	case function == "htpasswd":
		forms = append(forms, "root"+strings.TrimPrefix(good, "user"), good[len("user:"):], "user:password")
	case function == "bcrypt":
		forms = append(forms, "$2a$31"+good[len("$2a$10"):], good[:len(good)-1]+":", "password")
	case function == "now":
		return []string{"", "{", "intruder: true", good + "\nintruder: true", good + " intruder", "2020-01-01", "@1"}
	default:
		forms = append(forms, wrapped(good), good[1:], good+"a", strings.Repeat("\t", len(good)), strings.Repeat("é", len(good)/2))
	}
	return forms
}

// TestGeneratedValuesHaveTheFormOfTheirFunction has them in a ConfigMap, which nobody may
// write who may write Secrets alone.
func TestGeneratedValuesHaveTheFormOfTheirFunction(t *testing.T) {
	b := newBench(t)
	for function := range generating {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			text := object("ConfigMap", "a", "data:\n  v: "+quoted(function)+"\n")
			first := b.render(t, text, nil)
			again := b.render(t, text, first.Generated)
			if again.Manifest != first.Manifest || !maps.Equal(again.Generated, first.Generated) || again.Made {
				t.Fatalf("it was %q, then %q", first.Generated, again.Generated)
			}
			good, came := textOf(first.Generated), first.Objects[0].Object["data"].(map[string]any)["v"]
			for _, other := range otherForms(function, good) {
				result := b.render(t, text, tampered(t, first.Generated, other))
				got := result.Objects[0].Object["data"].(map[string]any)["v"]
				same := strings.TrimSpace(other) == good && (isCert(function) || function == "randInt") // as JSON
				if same != (got == came) || got == other || function != "now" && result.Made == same || strings.Contains(result.Manifest, "intruder") {
					t.Errorf("%q in place of %q led to %q", other, good, got)
				}
			}
		})
	}
}

func TestTimeOfARecordIsShownInUTC(t *testing.T) {
	b := newBench(t)
	text := object("ConfigMap", "a", "data:\n  v: {{ now | toString | quote }}\n")
	first := b.render(t, text, nil)
	at, err := time.Parse(time.RFC3339Nano, textOf(first.Generated))
	must.Succeed(t, err)
	elsewhere := at.In(time.FixedZone("intruder", 3600)).Format(time.RFC3339Nano)
	if got := b.render(t, text, tampered(t, first.Generated, elsewhere)); got.Manifest != first.Manifest || !maps.Equal(got.Generated, first.Generated) {
		t.Errorf("%s led to %s", elsewhere, got.Manifest)
	}
}

// TestGeneratedValuesWriteNoYAML has calls whose values no quotes surround, in objects of all
// kinds: no line of another value gets there, and nothing changes but the value.
func TestGeneratedValuesWriteNoYAML(t *testing.T) {
	b := newBench(t)
	for function := range generating {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			v := "{{ $v }}"
			if isCert(function) || function == "genPrivateKey" || function == "randAscii" {
				v = "{{ $v | b64enc | quote }}\n  plain: |\n    {{- $v | nindent 4 }}"
			}
			named := `{{ define "v" }}` + value(function) + `{{ end }}{{ $v := include "v" . }}` + "\n"
			text := named + object("Secret", "s", "stringData:\n  v: "+v+"\n") + object("ConfigMap", "c", "data:\n  v: "+v+"\n") +
				"---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-upgrade}\nspec:\n  v: " + v + "\n"
			first := b.render(t, text, nil)
			if again := b.render(t, text, first.Generated); again.Manifest != first.Manifest || !maps.Equal(again.Generated, first.Generated) {
				t.Fatal("it changed")
			}
			intruders := []string{"x\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: intruder}\n", "x\n  intruder: true", "{intruder: true}", "x # intruder", "!!binary intruder", "&intruder x", "intruder: true"}
			if isCert(function) {
				intruders = intruders[:2] // each takes new keys
			}
			for _, intruder := range intruders {
				earlier := job.Generated{}
				for key, good := range first.Generated {
					earlier[key] = intruder
					if isCert(function) {
						var made struct{ Cert, Key string }
						must.Succeed(t, json.Unmarshal([]byte(good), &made))
						earlier[key] = pair(made.Cert+intruder, made.Key)
					}
				}
				result := b.render(t, text, earlier)
				if strings.Contains(result.Manifest, "intruder") || strings.Contains(result.Hooks[0].Manifest, "intruder") {
					t.Errorf("%q came out", intruder)
				}
				must.Equal(t, shapeOf(first), shapeOf(result), intruder)
			}
		})
	}
}

// shapeOf returns the fields of all objects and hooks, but for the values that are generated.
func shapeOf(result *job.Result) map[string]string {
	shape := fieldsOf(result)
	for path := range shape {
		if strings.HasSuffix(path, ".v") || strings.HasSuffix(path, ".plain") {
			shape[path] = ""
		}
	}
	return shape
}

// TestGeneratedValuesWithOtherKeys has keys as no rendering writes them.
func TestGeneratedValuesWithOtherKeys(t *testing.T) {
	b := newBench(t)
	text := object("ConfigMap", "a", "data:\n  v: {{ randAlphaNum 12 | quote }}\n")
	first := b.render(t, text, nil)
	parts := strings.Split(slices.Collect(maps.Keys(first.Generated))[0], "/")
	places := strings.Repeat("000000000000,", 100_000)
	for name, change := range map[string]func(parts []string) []string{
		"a negative age":   func(parts []string) []string { parts[2] = "-1"; return parts },
		"a great age":      func(parts []string) []string { parts[2] = "9223372036854775807"; return parts },
		"no age":           func(parts []string) []string { parts[2] = "x"; return parts },
		"very many places": func(parts []string) []string { parts[4] += "," + places; return parts },
		"many rough ones":  func(parts []string) []string { parts[5] += "," + places; return parts },
		"another function": func(parts []string) []string { parts[0] = "uuidv4\nkind: Pod"; return parts },
		"too few parts":    func(parts []string) []string { return parts[:3] },
	} {
		earlier := job.Generated{strings.Join(change(slices.Clone(parts)), "/"): "abcdefghijkl"}
		result := b.render(t, text, earlier)
		if !result.Made || strings.Contains(result.Manifest, "abcdefghijkl") {
			t.Errorf("%s: its value is used", name)
		}
		size := 0
		for key := range result.Generated {
			size += len(key)
		}
		if size > 1000 {
			t.Errorf("%s: keys of %d bytes are kept", name, size)
		}
	}
}
