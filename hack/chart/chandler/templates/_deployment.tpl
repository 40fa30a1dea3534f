{{- /* It sets fields of a Deployment, and renders nothing. */}}
{{- define "chandler.deployment" }}
{{- $pod := .Deployment.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- with .Values.image }}
  {{- $tag := .tag | default $.Chart.AppVersion }}
  {{- $_ := set $container "image" (printf "%s:%s%s" .repository $tag (empty .digest | ternary "" (printf "@%s" .digest))) }}
{{- end }}
{{- if not (kindIs "invalid" .Values.replicas) }}
  {{- $_ := set .Deployment.spec "replicas" .Values.replicas }}
{{- end }}
{{- $args := without $container.args "--v=2" }}
{{- $_ := set $container "args" (concat $args (list (printf "--v=%v" .Values.verbosity)) .Values.extraArgs) }}
{{- $variables := dict "NAMESPACES" (join "," .Values.namespaces) "WATCH_FILTER" .Values.watchFilter "GOMEMLIMIT" .Values.goMemLimit }}
{{- range $variable := $container.env }}
  {{- with get $variables .name }}
    {{- $_ := set $variable "value" . }}
  {{- end }}
{{- end }}
{{- $_ := set $container "env" (concat $container.env .Values.env) }}
{{- with .Values.resources }}
  {{- $_ := set $container "resources" . }}
{{- end }}
{{- range $field, $value := .Values.podSpec }}
  {{- $_ := set $pod $field $value }}
{{- end }}
{{- end }}
