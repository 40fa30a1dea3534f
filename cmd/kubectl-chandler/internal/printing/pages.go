// SPDX-License-Identifier: Apache-2.0

package printing

// pages are what people see, by the name of the page. Parts that several of them have begin with a small letter.
const pages = `
{{- define "Status" }}
{{- if .InstancesHidden }}You may not list ProviderInstances, so none are shown
{{ else }}{{ table "instances" .Instances }}{{ end }}
{{ if not .Stacks }}No AddonStack here. -A looks in all namespaces
{{ end }}
{{- table "stacks" .Stacks }}
{{- with .Failed }}
{{ red "FAILED" }}{{ template "causes" . }}{{ end }}
{{- with .Waiting }}
{{ yellow "WAITING" }}{{ template "causes" . }}{{ end }}
{{- with .Progressing }}
{{ yellow "IN PROGRESS" }}{{ template "causes" . }}{{ end }}
{{- template "held" .Held }}
DRIFT: {{ if .Drift.Objects }}{{ number .Drift.Objects "object" }} on {{ number .Drift.Clusters "cluster" -}}
{{- " differ from what was installed" }}{{ else }}nothing{{ end }}
{{ range concat .Failed .Waiting }}{{ if .Clusters }}Next: kubectl chandler why {{ index .Clusters 0 }} -n {{ .Namespace }}
{{ break }}{{ end }}{{ end }}{{ end }}

{{- define "instances" }}{{ if . }}INSTANCE	VERSION	SCOPE	HEARTBEAT	CLUSTERS	READY
{{ range . }}{{ .Namespace }}/{{ .Name }}	{{ .Spec.Version }}	{{ .Status.Scope }}
{{- with .Spec.WatchFilter }} ({{ . }}){{ end }}	{{ since .Status.HeartbeatTime | age }}
{{- with .Status.Clusters }}	{{ .Total }}	{{ .Ready }}{{ else }}	0	0{{ end }}
{{ end }}{{ end }}{{ end }}

{{- define "stacks" }}{{ if . -}}
STACK	CLUSTERS	READY	FAILED	WAITING	UPDATING	SINCE	{{ if wide }}REVISION	{{ end }}VERSIONS
{{ range $stack := . }}{{ .Namespace }}/{{ .Name }}
{{- with .Clusters }}	{{ .Total }}	{{ .Ready }}	{{ .Failed }}	{{ .Waiting }}{{ end -}}
{{- "	" }}{{ .Updating }}	{{ age .Since }}	{{ if wide }}{{ .Revision }}	{{ end }}
{{- range $i, $addon := .Addons }}{{ if $i }}, {{ end }}{{ versions $addon }}{{ end }}
{{- with .Rollout }}{{ if ne .Phase "Completed" }} (rollout: {{ .Phase }}, {{ or $stack.Clusters.Updated 0 -}}
{{- " of " }}{{ $stack.Clusters.Total }}){{ end }}{{ end }}
{{ end }}{{ end }}{{ end }}

{{- define "causes" }}: {{ number (clusters .) "cluster" }}, {{ number (len .) "cause" }}
{{ range . }}{{ template "cause" . }}{{ end }}{{ end }}

{{- define "cause" }}  {{ if .Addon }}{{ .Stack }}/{{ .Addon }}
{{- else if .Kind }}{{ .Kind }} {{ .Name }}
{{- else }}{{ .Namespace }}{{ end }}  {{ .Reason }}{{ if eq .Phase "Degraded" }} (Degraded){{ end }}
{{- with .Clusters }}  {{ number (len .) "cluster" }}: {{ names . }}{{ end }}
{{- with .Since }}  {{ age . }}{{ end }}
{{ paragraph "" 6 .Message }}{{ end }}

{{- define "held" }}{{ range . }}
{{ yellow "HELD" }}: {{ join .Addons ", " }} of stack {{ .Stack }} on {{ number (len .Clusters) "cluster" -}}
{{- " " }}({{ .Cause }}): {{ names .Clusters }}
  To remove them: kubectl chandler confirm {{ .Stack }} -n {{ .Namespace }}. To keep them: undo the change
{{ end }}{{ end }}

{{- define "WouldGo" }}{{ range . }}{{ join .Addons ", " }} would go from {{ number (len .Clusters) "cluster" -}}
{{- " " }}({{ .Cause }}): {{ names .Clusters }}
{{ end }}{{ end }}

{{- define "Cluster" }}{{ .Name }} ({{ .Namespace }})  {{ or .ReadyAddons "0/0" }} add-ons ready
{{- "  " }}{{ if eq .Ready "True" }}{{ green "READY" }}{{ else }}{{ red "NOT READY" }}{{ end }} for {{ age .Since }}
{{ range .Conditions }}
{{- printf "%s=%s %s, for %s. %s" .Type .Status .Reason (age .LastTransitionTime) .Message | paragraph "" 2 }}
{{- end }}
{{- template "held" .Held }}
{{ range .Addons }}{{ if eq .Phase "Ready" }}{{ template "ready" . }}{{ else }}{{ template "unready" . }}{{ end }}{{ end }}
{{- end }}

{{- define "title" }}{{ .Name }}{{ with .Version }} {{ clean . }}{{ end }}{{ end }}

{{- define "ready" }}{{ green "v" }} {{ template "title" . }}  Ready for {{ age .Since }}
{{- with .Drift }}{{ if .Repaired }}  drift: {{ number .Repaired "repair" }}, the last {{ age .LastTime }} ago
{{- end }}{{ end }}
{{ paragraph "    Note" 12 .Message }}
{{- with .Drift }}{{ if .Objects }}
{{- printf "%s as others changed them: %s" (number .Objects "object") .Message | paragraph "    Drift" 12 }}
{{- end }}{{ end }}{{ end }}

{{- define "unready" }}{{ if .IsBad }}{{ red "x" }}{{ else }}{{ yellow "-" }}{{ end }} {{ template "title" . -}}
{{- " " }}(stack {{ .Stack }}, namespace {{ .Namespace }})  {{ .Phase }}: {{ .Reason }}  for {{ age .Since }}
{{ paragraph "    What" 12 .Message }}
{{- paragraph "    Meaning" 12 .Meaning }}
{{- if and .Revision .Objects }}
{{- printf "release revision %d; %d of %d objects are ready" .Revision .Objects.Ready .Objects.Total | paragraph "    Now" 12 }}
{{- end }}
{{- names .SameOn | paragraph "    Same on" 12 }}
{{- if .FineOn }}
{{- printf "%s, %d of them at the same revision %s" (number .FineOn "cluster") .AtRevision .StackRevision | paragraph "    Fine on" 12 }}
{{- end }}{{ end }}

{{- define "Why" }}{{ table "stacks" .Stacks }}{{ template "held" .Held }}
{{- if not (or .Held .Failed .Waiting .Progressing) }}{{ green "Nothing is wrong" }}{{ end }}
{{ range concat .Failed .Waiting .Progressing }}
{{- template "cause" . }}{{ paragraph "      Meaning" 14 .Meaning }}{{ end }}
{{- with .Notes }}{{ if .Text }}
Notes of the chart, as on {{ .Cluster }}:
{{ clean (trim .Text) }}
{{ end }}{{ end }}{{ end }}

{{- define "Tree" }}AddonStack {{ .Namespace }}/{{ .Name }}  revision {{ or .Revision "-" }}
{{- "  " }}{{ .Clusters.Ready }} of {{ .Clusters.Total }} clusters are ready
{{ range branches . "" "" }}{{ .Lines }}{{ versions .Addon }}  {{ states .Addon }}
{{- with .DependsOn }}  needs {{ join . ", " }}{{ end }}
{{ end }}{{ end }}

{{- define "History" }}AddonStack {{ .Namespace }}/{{ .Stack }}
{{ range .Revisions }}
{{ .Number }}  {{ .Name }}  {{ age .Created }} ago  {{ number .Clusters "cluster" }}, {{ .Ready }} ready
{{- if .Rejected }}; rejected: {{ shorten .Rejected 120 }}
{{- else if .WasReady }}; was Ready on all clusters{{ end }}
{{ template "Changes" .Changes }}{{ end }}{{ end }}

{{- define "Changes" }}{{ range . }}    {{ shorten . 116 }}
{{ end }}{{ end }}

{{- define "Rollout" }}AddonStack {{ .Namespace }}/{{ .Name }}  revision {{ .Status.Rollout.Revision -}}
{{- "  " }}{{ print .Status.Rollout.Phase | upper }}{{ with rolledOut . }} for {{ age .LastTransitionTime }}{{ end }}

{{ table "waves" .Status.Rollout }}{{ with rolledOut . }}{{ paragraph "" 0 .Message }}{{ end }}{{ end }}

{{- define "waves" }}WAVE	CLUSTERS	UPDATED	DONE	FAILED	AWAY	STATE
{{ range $i, $_ := .Waves }}{{ .Name }}	{{ .Total }}	{{ .Updated }}	{{ .Done }}	{{ .Failed }}	{{ .Away }}
{{- if lt $i $.WavesDone }}	done{{ else if eq $i $.WavesDone }}	{{ $.Phase }}{{ else }}	waits{{ end }}
{{ end }}{{ end }}

{{- define "Events" }}{{ range .Items }}{{ template "Event" . }}{{ end }}{{ end }}

{{- define "Event" }}{{ seen . }}  {{ lower .Regarding.Kind }}/{{ .Regarding.Name -}}
{{- "  " }}{{ if eq .Type "Normal" }}{{ .Reason }}{{ else }}{{ red .Reason }}{{ end }}
{{ paragraph "" 6 .Note }}{{ end }}

{{- define "Version" }}client: {{ .Client }}
{{ range .Instances }}{{ .Namespace }}/{{ .Name }}: {{ .Spec.Version }}
{{ end }}{{ end }}
`
