// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func TestSchemaViolations(t *testing.T) {
	const secret = "s3cr3t-value"
	cases := map[string]struct {
		schema   string
		values   map[string]any
		mentions []string
	}{
		"type":       {`{"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}`, map[string]any{"a": map[string]any{"b": secret}}, []string{"values.a.b: got string, want integer"}},
		"pattern":    {`{"properties":{"a":{"pattern":"^x$"}}}`, map[string]any{"a": secret}, []string{"a: ", "^x$"}},
		"enum":       {`{"properties":{"a":{"enum":["x","y"]}}}`, map[string]any{"a": secret}, []string{"a: value must be one of 'x', 'y'"}},
		"const":      {`{"properties":{"a":{"const":"x"}}}`, map[string]any{"a": secret}, []string{"a: value must be 'x'"}},
		"format":     {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"ipv4"}}}`, map[string]any{"a": secret}, []string{"a: is no valid ipv4"}},
		"minimum":    {`{"properties":{"a":{"minimum":5}}}`, map[string]any{"a": float64(3)}, []string{"a: must be at least 5"}},
		"required":   {`{"required":["a","b"]}`, map[string]any{"a": secret}, []string{"values: missing property 'b'"}},
		"additional": {`{"additionalProperties":false}`, map[string]any{"a": secret}, []string{"'a' not allowed"}},
		"in a list":  {`{"properties":{"a":{"items":{"type":"number"}}}}`, map[string]any{"a": []any{float64(1), secret}}, []string{"values.a.1: got string"}},
		"any of":     {`{"properties":{"a":{"anyOf":[{"type":"number"},{"maxLength":3}]}}}`, map[string]any{"a": secret}, []string{"a: got string, want number", "maxLength: got 12, want 3"}},
		"by $ref":    {`{"definitions":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/definitions/n"}}}`, map[string]any{"a": secret}, []string{"a: got string"}},
		"by its own name": {`{"definitions":{"n":{"type":"number"}},"properties":{"a":{"$ref":"values.schema.json#/definitions/n"}}}`,
			map[string]any{"a": secret}, []string{"a: got string"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := rendering.ChartJob(rendering.ChartOf(map[string]string{"values.schema.json": c.schema, "templates/a.yaml": rendering.ConfigMap}))
			req.Values = c.values
			_, err := rendering.Render(t, req)
			rendering.WantReason(t, err, job.ReasonSchemaViolation, c.mentions...)
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error shows the value: %v", err)
			}
		})
	}
}

func TestSchemasOfSubcharts(t *testing.T) {
	files := rendering.ChartOf(map[string]string{
		"charts/sub/Chart.yaml":         "{apiVersion: v2, name: sub, version: 1.0.0}",
		"charts/sub/values.yaml":        "n: 1",
		"charts/sub/values.schema.json": `{"properties":{"n":{"type":"number"}}}`,
		"templates/a.yaml":              rendering.ConfigMap,
	})
	if _, err := rendering.Render(t, rendering.ChartJob(files)); err != nil {
		t.Errorf("defaults: %v", err)
	}
	req := rendering.ChartJob(files)
	req.Values = map[string]any{"sub": map[string]any{"n": "x"}}
	_, err := rendering.Render(t, req)
	rendering.WantReason(t, err, job.ReasonSchemaViolation, "values.sub.n: got string, want number")
}

// TestSchemaReferencesStayInside proves with a listener and a file that nothing is fetched.
func TestSchemaReferencesStayInside(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer listener.Close()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	const sentinel = "TOPSECRET-SENTINEL"
	file := filepath.Join(t.TempDir(), "secret.json")
	must.Succeed(t, os.WriteFile(file, []byte(`{"const":"`+sentinel+`"}`), 0o600))
	refs := map[string]string{
		"http":               "http://" + listener.Addr().String() + "/s.json",
		"https":              "https://" + listener.Addr().String() + "/s.json",
		"file":               "file://" + file,
		"file, relative":     "../../../../../.." + file,
		"another file":       "other.json",
		"urn":                "urn:example:thing",
		"an unknown scheme":  "ftp://" + listener.Addr().String() + "/s.json",
		"a metaschema of us": "https://example.com/schema",
	}
	r := rendering.NewRenderer(t)
	for name, ref := range refs {
		for keyword, schema := range map[string]string{
			"$ref":    `{"properties":{"a":{"$ref":"` + ref + `"}}}`,
			"$schema": `{"$schema":"` + ref + `"}`,
			"$id":     `{"$id":"` + ref + `","properties":{"a":{"$ref":"x.json"}}}`,
		} {
			if name == "urn" && keyword == "$id" {
				continue // a relative reference below a urn is that urn: the schema itself
			}
			t.Run(name+" as "+keyword, func(t *testing.T) {
				req := rendering.ChartJob(rendering.ChartOf(map[string]string{"values.schema.json": schema}))
				req.Values = map[string]any{"a": "x"}
				_, err := r.Chart(t.Context(), req)
				rendering.WantReason(t, err, job.ReasonChartInvalid, "values.schema.json", "skipSchemaValidation")
				if strings.Contains(err.Error(), sentinel) {
					t.Errorf("error shows the file's content: %v", err)
				}
				req.SkipSchema = true
				if _, err := r.Chart(t.Context(), req); err != nil {
					t.Errorf("without its schema: %v", err)
				}
			})
		}
	}
	time.Sleep(50 * time.Millisecond)
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestSchemaThatRefersToItself(t *testing.T) {
	r := rendering.NewRenderer(t)
	for name, schema := range map[string]string{
		"at once":    `{"$ref":"#"}`,
		"in a ring":  `{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}`,
		"in any of":  `{"anyOf":[{"$ref":"#"}]}`,
		"by its own": `{"$ref":"values.schema.json"}`,
	} {
		t.Run(name, func(t *testing.T) {
			req := rendering.ChartJob(rendering.ChartOf(map[string]string{"values.schema.json": schema}))
			_, err := r.Chart(t.Context(), req)
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
		})
	}
	// A recursive schema is fine where the values end.
	req := rendering.ChartJob(rendering.ChartOf(map[string]string{"values.schema.json": `{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`}))
	req.Values = map[string]any{"a": map[string]any{"a": map[string]any{}}}
	if _, err := r.Chart(t.Context(), req); err != nil {
		t.Error(err)
	}
}

// TestWorkerReadsZonesWithoutFiles: a worker cannot open the files that Go reads zones from.
func TestWorkerReadsZonesWithoutFiles(t *testing.T) {
	r := rendering.NewRenderer(t)
	out, err := r.Template(t.Context(), job.Template{Name: "x", Text: `{{ dateInZone "15:04" 0 "Asia/Tokyo" }}`})
	if err != nil || out != "09:00" {
		t.Errorf("got %q, %v", out, err)
	}
}
