// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/test/must"
)

// calls has a template for each function that would return something else each time.
var calls = map[string]string{
	"randAlphaNum":             `{{ randAlphaNum 12 }}`,
	"randAlpha":                `{{ randAlpha 12 }}`,
	"randNumeric":              `{{ randNumeric 12 }}`,
	"randAscii":                `{{ randAscii 12 | b64enc }}`,
	"randBytes":                `{{ randBytes 12 }}`,
	"randInt":                  `{{ randInt 0 1000000000 }}`,
	"uuidv4":                   `{{ uuidv4 }}`,
	"shuffle":                  `{{ shuffle "abcdefghijklmnopqrstuvwxyz" }}`,
	"genPrivateKey":            `{{ genPrivateKey "ed25519" }}`,
	"genCA":                    `{{ $ca := genCA "a" 10 }}{{ $ca.Cert }}{{ $ca.Key }}`,
	"genCAWithKey":             `{{ $ca := genCAWithKey "a" 10 (genPrivateKey "ecdsa") }}{{ $ca.Cert }}`,
	"genSelfSignedCert":        `{{ $c := genSelfSignedCert "a" (list "10.0.0.1") (list "a.b") 10 }}{{ $c.Cert }}`,
	"genSelfSignedCertWithKey": `{{ $c := genSelfSignedCertWithKey "a" nil nil 10 (genPrivateKey "ecdsa") }}{{ $c.Cert }}`,
	"genSignedCert":            `{{ $ca := genCA "a" 10 }}{{ $c := genSignedCert "b" nil (list "b.c") 10 $ca }}{{ $c.Cert }}{{ $c.Key }}`,
	"genSignedCertWithKey":     `{{ $ca := genCA "a" 10 }}{{ $c := genSignedCertWithKey "b" nil nil 10 $ca (genPrivateKey "ecdsa") }}{{ $c.Cert }}`,
	"bcrypt":                   `{{ bcrypt "password" }}`,
	"htpasswd":                 `{{ htpasswd "user" "password" }}`,
	"encryptAES":               `{{ encryptAES "key" "plain text" }}`,
	"now":                      `{{ now | unixEpoch }} {{ now }}`,
	"ago":                      `{{ ago (toDate "2006-01-02" "2020-01-01") }}`,
	"date":                     `{{ date "2006-01-02 15:04:05.000000000" "no date" }}`,
	"dateInZone":               `{{ dateInZone "15:04:05.000000000" nil "Asia/Tokyo" }}`,
	"date_in_zone":             `{{ date_in_zone "15:04:05.000000000" nil "UTC" }}`,
	"htmlDate":                 `{{ htmlDate nil }}`,
	"htmlDateInZone":           `{{ htmlDateInZone nil "UTC" }}`,
	"durationRound":            `{{ durationRound (toDate "2006-01-02" "2020-01-01") }}`,
	"keys":                     `{{ keys (dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5) }}`,
	"values":                   `{{ values (dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5) }}`,
}

func run(t *testing.T, text string, earlier job.Generated, clock func() time.Time) (string, *keptvalues.Generator) {
	t.Helper()
	g := keptvalues.NewGenerator(earlier, 256<<10)
	if clock != nil {
		g.SetClock(clock)
	}
	parsed, err := template.New("x").Funcs(sprig.TxtFuncMap()).Funcs(g.Funcs()).Parse(text)
	must.Succeed(t, err)
	var out strings.Builder
	must.Succeed(t, parsed.Execute(&out, map[string]any{}))
	return out.String(), g
}

func TestGeneratedValuesComeAgain(t *testing.T) {
	later := func() time.Time { return time.Now().Add(26 * time.Hour) } // the certificates live 10 days
	for name, text := range calls {
		t.Run(name, func(t *testing.T) {
			first, memory := run(t, text, nil, nil)
			second, again := run(t, text, memory.Used(), later)
			if first != second {
				t.Errorf("first %q, then %q", first, second)
			}
			must.Equal(t, memory.Used(), again.Used())
		})
	}
}

// TestNoFunctionIsForgotten makes a new version of sprig look at this list again.
func TestNoFunctionIsForgotten(t *testing.T) {
	all := sprig.TxtFuncMap()
	for name := range keptvalues.NewGenerator(nil, 0).Funcs() {
		if _, ok := all[name]; !ok {
			t.Errorf("sprig has no function %s", name)
		}
		if _, ok := calls[name]; !ok {
			t.Errorf("no test for %s", name)
		}
	}
	// A function that sprig calls not hermetic must be remembered, or is absent, or only formats a time.
	hermetic := sprig.HermeticTxtFuncMap()
	for name := range all {
		_, replaced := keptvalues.NewGenerator(nil, 0).Funcs()[name]
		pure := slices.Contains([]string{"date_modify", "dateModify", "env", "expandenv", "getHostByName"}, name)
		if _, ok := hermetic[name]; !ok && !replaced && !pure {
			t.Errorf("%s is not hermetic and not remembered", name)
		}
	}
	must.Equal(t, 211, len(all), "functions of sprig: look for new ones that are random or ask the clock")
}

func TestCallsAreToldApart(t *testing.T) {
	out, g := run(t, `{{ randAlpha 9 }} {{ randAlpha 9 }} {{ randAlpha 8 }}`, nil, nil)
	words := strings.Fields(out)
	if words[0] == words[1] || len(g.Used()) != 3 {
		t.Errorf("%d values: %v", len(g.Used()), words)
	}
	// A call more changes nothing for those before, and values of calls that aren't made are kept.
	longer, g2 := run(t, `{{ randAlpha 9 }} {{ randAlpha 9 }} {{ randAlpha 8 }} {{ uuidv4 }}`, g.Used(), nil)
	if !strings.HasPrefix(longer, out) || len(g2.Used()) != 4 {
		t.Errorf("got %q, want it to start with %q", longer, out)
	}
	_, g3 := run(t, `{{ randAlpha 8 }}`, g2.Used(), nil)
	must.Equal(t, 4, len(g3.Used()), "values that are kept")
}

func TestUnusedValuesAreBounded(t *testing.T) {
	var earlier job.Generated
	for i := range 40 { // each with other arguments than the one before
		_, g := run(t, fmt.Sprintf(`{{ randAlpha %d }}`, 4000+i), earlier, nil)
		earlier = g.Used()
		size := 0
		for key, value := range earlier {
			size += len(key) + len(value)
		}
		if size > keptvalues.MaxUnused+5000 || len(earlier) < min(i+1, 10) {
			t.Fatalf("%d values of %d bytes are kept after %d renderings", len(earlier), size, i+1)
		}
	}
}

func TestArgumentsAreOnlyHashed(t *testing.T) {
	_, g := run(t, `{{ bcrypt "hunter2hunter2" }}{{ encryptAES "hunter2hunter2" "x" }}{{ randAlpha 5 }}`, nil, nil)
	for key, value := range g.Used() {
		if strings.Contains(key+value, "hunter2") {
			t.Errorf("%s holds the password", key)
		}
	}
}

func TestCertificatesAreRenewedInTime(t *testing.T) {
	text := `{{ $ca := genCA "ca" 300 }}{{ $c := genSignedCert "a" nil nil 90 $ca }}{{ $ca.Cert }}|{{ $c.Cert }}`
	first, memory := run(t, text, nil, nil)
	in := func(days int) (ca, cert bool) {
		later := func() time.Time { return time.Now().AddDate(0, 0, days) }
		out, _ := run(t, text, memory.Used(), later)
		was, is := strings.Split(first, "|"), strings.Split(out, "|")
		return was[0] != is[0], was[1] != is[1]
	}
	if ca, cert := in(59); ca || cert {
		t.Errorf("after 59 of 90 days: new CA %t, new certificate %t", ca, cert)
	}
	if ca, cert := in(61); ca || !cert {
		t.Errorf("after 61 of 90 days: new CA %t, new certificate %t", ca, cert)
	}
	if ca, cert := in(201); !ca || !cert {
		t.Errorf("after 201 of 300 days: new CA %t, new certificate %t", ca, cert)
	}
	if at := time.Until(keptvalues.RenewAt(memory.Used())); at < 59*24*time.Hour || at > 61*24*time.Hour {
		t.Errorf("renewal in %s", at)
	}
	_, without := run(t, `{{ randAlpha 9 }}`, memory.Used(), nil)
	if at := keptvalues.RenewAt(without.Used()); !at.IsZero() || len(without.Used()) != 3 {
		t.Errorf("renewal of what isn't used any more at %s, of %d values", at, len(without.Used()))
	}
	if at := keptvalues.RenewAt(job.Generated{"now": "x"}); !at.IsZero() {
		t.Errorf("renewal of nothing at %s", at)
	}
}

func TestCertificatesWithoutLifeAreNotRenewed(t *testing.T) {
	for _, days := range []string{"0", "-5"} {
		text := `{{ $ca := genCA "ca" ` + days + ` }}{{ (genSignedCert "a" nil nil ` + days + ` $ca).Cert }}`
		first, memory := run(t, text, nil, nil)
		if at := keptvalues.RenewAt(memory.Used()); !at.IsZero() {
			t.Errorf("%s days: renewal at %s", days, at)
		}
		if second, _ := run(t, text, memory.Used(), func() time.Time { return time.Now().AddDate(0, 0, 9) }); first != second {
			t.Errorf("%s days: it is another one", days)
		}
	}
}

func TestBrokenMemoryIsReplaced(t *testing.T) {
	text := `{{ (genCA "a" 10).Cert | trunc 27 }} {{ lt (randInt 5 10) 10 }} {{ now | date "2006" | len }}`
	_, g := run(t, text, nil, nil)
	broken := maps.Clone(g.Used())
	for key := range broken {
		broken[key] = "{"
	}
	if out, _ := run(t, text, broken, nil); out != "-----BEGIN CERTIFICATE----- true 4" {
		t.Errorf("got %q", out)
	}
}
