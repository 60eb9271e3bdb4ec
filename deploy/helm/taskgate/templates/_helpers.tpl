{{- define "taskgate.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "taskgate.selector" -}}
app.kubernetes.io/name: taskgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "taskgate.labels" -}}
{{ include "taskgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The variable with the token of a person. */}}
{{- define "taskgate.tokenVariable" -}}
TASKGATE_TOKEN_{{ .name | upper | replace "-" "_" | replace "." "_" }}
{{- end }}

{{- define "taskgate.hasAdminService" -}}
{{- if or .Values.adminService.enabled .Values.metrics.serviceMonitor.enabled }}yes{{ end }}
{{- end }}

{{/* What the values contradict. */}}
{{- define "taskgate.refuse" -}}
{{- $config := .Values.config }}
{{- $store := $config.store | default dict }}
{{- $admin := $config.admin | default dict }}
{{- if or .Values.store.url $store.url }}
{{- fail "store.url: PostgreSQL is not supported yet; leave it empty, and the store is a file on a volume" }}
{{- end }}
{{- if $store.path }}
{{- fail "config.store.path: the chart sets it; take it out" }}
{{- end }}
{{- if or $admin.tokens $admin.people }}
{{- fail "config.admin: write people and tokens as operators.people" }}
{{- end }}
{{- if or $admin.tls (dig "proxy" "tls" "" $config) }}
{{- fail "config: write tls.proxySecret and tls.adminSecret in place of tls below proxy and admin" }}
{{- end }}
{{- if and (eq .Values.mode "sidecar") (not .Values.server.image) }}
{{- fail "server.image: mode sidecar needs the image of the MCP server" }}
{{- end }}
{{- if and (eq .Values.mode "sidecar") (ne (len ($config.sources | default list)) 1) }}
{{- fail "config.sources: mode sidecar has one server beside it, so write one source" }}
{{- end }}
{{- range $config.sources }}
{{- $isBeside := regexMatch "^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])[:/]" (.url | default "") }}
{{- if and (eq $.Values.mode "sidecar") (not $isBeside) }}
{{- fail (printf "config.sources: with mode sidecar the server is at http://127.0.0.1:PORT/PATH, not at %s" (.url | default "\"\"")) }}
{{- end }}
{{- if and (eq $.Values.mode "gateway") $isBeside }}
{{- fail (printf "config.sources: with mode gateway nothing listens at %s; name the server's Service, or write mode: sidecar" .url) }}
{{- end }}
{{- end }}
{{- if not (or .Values.operators.people $admin.oidc) }}
{{- fail "operators.people: nobody may decide; name somebody, or write config.admin.oidc" }}
{{- end }}
{{- if and (eq .Values.mode "gateway") .Values.server.image }}
{{- fail "server.image: it has no effect with mode gateway; write mode: sidecar" }}
{{- end }}
{{- $variables := list }}
{{- range .Values.operators.people }}
{{- $variables = append $variables (include "taskgate.tokenVariable" .) }}
{{- end }}
{{- if ne (len $variables) (len (uniq $variables)) }}
{{- fail "operators.people: two of the names differ only in case, or by - and ." }}
{{- end }}
{{- end }}

{{/* The configuration with what the chart adds. */}}
{{- define "taskgate.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $people := list }}
{{- $tokens := list }}
{{- range .Values.operators.people }}
{{- $people = append $people (dict "name" .name "groups" (.groups | default list)) }}
{{- $tokens = append $tokens (dict "name" (printf "%s-token" .name) "person" .name "token_env" (include "taskgate.tokenVariable" .) "roles" .roles) }}
{{- end }}
{{- $proxy := dict "bind" "0.0.0.0" }}
{{- $admin := dict "people" $people "tokens" $tokens }}
{{- if .Values.tls.proxySecret }}
{{- $_ := set $proxy "tls" (dict "cert" "/etc/taskgate/tls/proxy/tls.crt" "key" "/etc/taskgate/tls/proxy/tls.key") }}
{{- end }}
{{- if .Values.tls.adminSecret }}
{{- $_ := set $admin "tls" (dict "cert" "/etc/taskgate/tls/admin/tls.crt" "key" "/etc/taskgate/tls/admin/tls.key") }}
{{- end }}
{{- $added := dict "proxy" $proxy "admin" $admin "store" (dict "path" "/var/lib/taskgate/taskgate.db") }}
{{- toYaml (mergeOverwrite $config $added) }}
{{- end }}

{{/* The gateway's container; in a sidecar's place it starts before the server and ends after it. */}}
{{- define "taskgate.container" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.adminSecret "") -}}
name: taskgate
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.mode "sidecar" }}
restartPolicy: Always
{{- end }}
args: [serve, --config, /etc/thoughtgate/config.yaml]
env:
  # The kubelet's probes come from outside the pod's loopback.
  - name: THOUGHTGATE_ADMIN_BIND
    value: 0.0.0.0
  {{- $secret := .Values.operators.existingSecret }}
  {{- range .Values.operators.people }}
  - name: {{ include "taskgate.tokenVariable" . }}
    valueFrom:
      secretKeyRef:
        name: {{ $secret }}
        key: {{ .key | default .name }}
  {{- end }}
  {{- range .Values.secretEnv }}
  - name: {{ .name }}
    valueFrom:
      secretKeyRef:
        name: {{ .secret }}
        key: {{ .key }}
  {{- end }}
ports:
  - name: mcp
    containerPort: 7467
  - name: admin
    containerPort: 7469
startupProbe:
  httpGet: {path: /health, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /health, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 2
readinessProbe:
  httpGet: {path: /ready, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 2
{{- if eq .Values.mode "gateway" }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ .Values.gateway.preStopSeconds }}
{{- end }}
securityContext:
  runAsUser: 7467
  runAsGroup: 7467
  runAsNonRoot: true
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml .Values.gateway.resources | nindent 2 }}
volumeMounts:
  # The folder: a changed ConfigMap does not reach a single file with subPath.
  - name: config
    mountPath: /etc/thoughtgate
    readOnly: true
  - name: store
    mountPath: /var/lib/taskgate
  {{- if .Values.tls.proxySecret }}
  - name: tls-proxy
    mountPath: /etc/taskgate/tls/proxy
    readOnly: true
  {{- end }}
  {{- if .Values.tls.adminSecret }}
  - name: tls-admin
    mountPath: /etc/taskgate/tls/admin
    readOnly: true
  {{- end }}
{{- end }}
