{{- define "taskgate.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "taskgate.selector" -}}
app.kubernetes.io/name: taskgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of the pod of `helm test`. */}}
{{- define "taskgate.testSelector" -}}
app.kubernetes.io/name: taskgate-test
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

{{- define "taskgate.hasDatabase" -}}
{{- if .Values.store.postgres.existingSecret }}yes{{ end }}
{{- end }}

{{- define "taskgate.kind" -}}
{{ ternary "Deployment" "StatefulSet" (ne (include "taskgate.hasDatabase" .) "") }}
{{- end }}

{{/* The variable with the URL of the database, for the gateway and for the migration. */}}
{{- define "taskgate.storeVariable" -}}
TASKGATE_STORE_URL
{{- end }}

{{/* What the values contradict about the store. */}}
{{- define "taskgate.refuseStore" -}}
{{- $config := .Values.config }}
{{- $postgres := .Values.store.postgres }}
{{- if or $config.store $config.replica }}
{{- fail "config.store, config.replica: the chart sets them from store, replica and replicas; take them out" }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not $postgres.existingSecret) }}
{{- fail "replicas: more than one needs PostgreSQL, because a file is one process's alone; write store.postgres.existingSecret" }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (eq .Values.mode "sidecar") }}
{{- fail "replicas: with mode sidecar there is one, because the server beside another knows none of this one's sessions; write mode: gateway" }}
{{- end }}
{{- if and $postgres.existingSecret (not .Values.replica.existingSecret) }}
{{- fail "replica.existingSecret: with PostgreSQL it needs a Secret with the keys that all replicas share" }}
{{- end }}
{{- if and $postgres.migration.existingSecret (not $postgres.existingSecret) }}
{{- fail "store.postgres.migration: it has no effect without store.postgres.existingSecret" }}
{{- end }}
{{- if and $postgres.migration.grantTo (not $postgres.migration.existingSecret) }}
{{- fail "store.postgres.migration.grantTo: it has no effect without store.postgres.migration.existingSecret" }}
{{- end }}
{{- if and .Values.store.existingClaim $postgres.existingSecret }}
{{- fail "store.existingClaim: it has no effect with store.postgres; take one of the two out" }}
{{- end }}
{{- if and .Values.stateKey.existingSecret $postgres.existingSecret }}
{{- fail "stateKey.existingSecret: with store.postgres the key is that of replica.existingSecret; take one of the two out" }}
{{- end }}
{{- $egress := .Values.networkPolicy.egress }}
{{- if and $egress.enabled $postgres.existingSecret (not $egress.database) }}
{{- fail "networkPolicy.egress.database: nothing is named, so the gateway would not reach its database" }}
{{- end }}
{{- end }}

{{/* What the values contradict about what is around the gateway. */}}
{{- define "taskgate.refuseObjects" -}}
{{- if hasKey .Values.files "config.yaml" }}
{{- fail "files: config.yaml is the configuration; write it as config" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.hosts: name the host under which agents call" }}
{{- end }}
{{- $accepted := dig "proxy" "allowed_hosts" list .Values.config }}
{{- range .Values.ingress.hosts }}
{{- if and $.Values.ingress.enabled $accepted (not (has . $accepted)) }}
{{- fail (printf "ingress.hosts: the gateway would refuse %s; add it to config.proxy.allowed_hosts" .) }}
{{- end }}
{{- end }}
{{- $monitor := .Values.metrics.serviceMonitor }}
{{- if and $monitor.enabled .Values.networkPolicy.enabled (not $monitor.from) }}
{{- fail "metrics.serviceMonitor.from: the NetworkPolicy lets nobody read the metrics; name Prometheus as in a NetworkPolicy's from" }}
{{- end }}
{{- if hasKey (.Values.server.container.lifecycle | default dict) "preStop" }}
{{- fail "server.container.lifecycle.preStop: the chart's own lets calls under way end; see server.drainSeconds" }}
{{- end }}
{{- end }}

{{/* What the values contradict. */}}
{{- define "taskgate.refuse" -}}
{{- $config := .Values.config }}
{{- if not $config.sources }}
{{- fail "config.sources: the chart names no MCP server; write yours" }}
{{- end }}
{{- if not $config.governance }}
{{- fail "config.governance: the chart has no rules; write yours, such as {defaults: {action: approve}}" }}
{{- end }}
{{- include "taskgate.refuseStore" . }}
{{- include "taskgate.refuseObjects" . }}
{{- $admin := $config.admin | default dict }}
{{- if or $admin.tokens $admin.people }}
{{- fail "config.admin: write people and tokens as operators.people" }}
{{- end }}
{{- if or $admin.tls (dig "proxy" "tls" "" $config) }}
{{- fail "config: write tls.proxySecret and tls.adminSecret in place of tls below proxy and admin" }}
{{- end }}
{{- if and .Values.telemetry.enabled $config.telemetry }}
{{- fail "config.telemetry: write it as telemetry, or leave telemetry.enabled out" }}
{{- end }}
{{- if and .Values.telemetry.enabled (not .Values.telemetry.endpoint) }}
{{- fail "telemetry.endpoint: name the collector, such as http://collector.monitoring:4318" }}
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
{{- $names := list }}
{{- range fromYamlArray (include "taskgate.environment" .) }}
{{- if has .name $names }}
{{- fail (printf "%s: two values make this variable; see operators.people (names that differ only in case, or by - and .), secretEnv and extraEnv" .name) }}
{{- end }}
{{- $names = append $names .name }}
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
{{- $added := dict "proxy" $proxy "admin" $admin }}
{{- if include "taskgate.hasDatabase" . }}
{{- $_ := set $added "store" (dict "url" (dict "env" (include "taskgate.storeVariable" .))) }}
{{- $_ := set $added "replica" (fromYaml (include "taskgate.replica" .)) }}
{{- $_ := set $added "state_key" (dict "env" "TASKGATE_STATE_KEY") }}
{{- else }}
{{- $_ := set $added "store" (dict "path" "/var/lib/taskgate/taskgate.db") }}
{{- if .Values.stateKey.existingSecret }}
{{- $_ := set $added "state_key" (dict "env" "TASKGATE_STATE_KEY") }}
{{- end }}
{{- end }}
{{- if .Values.telemetry.enabled }}
{{- $_ := set $added "telemetry" (fromYaml (include "taskgate.telemetry" .)) }}
{{- end }}
{{- toYaml (mergeOverwrite $config $added) }}
{{- end }}

{{/* Of the keys that only a restart puts into force, as docs/configuration.md marks them. All others are reloaded. */}}
{{- define "taskgate.restartSum" -}}
{{- $config := fromYaml (include "taskgate.config" .) }}
{{- $fixed := dict }}
{{- range list "telemetry" "store" "replica" "state_key" "workers" "proxy.bind" "limits.connections" }}
{{- $value := $config }}
{{- range splitList "." . }}
{{- $value = get ($value | default dict) . }}
{{- end }}
{{- $_ := set $fixed . $value }}
{{- end }}
{{- toJson $fixed | sha256sum }}
{{- end }}

{{/* The name of a pod is its replica's, and its address is where the others reach it. */}}
{{- define "taskgate.replica" -}}
{{- $isSix := eq .Values.replica.ipFamily "IPv6" -}}
id: ${POD_NAME}
address: http://{{ ternary "[${POD_IP}]" "${POD_IP}" $isSix }}:{{ .Values.replica.port }}
bind: "{{ ternary "[::]" "0.0.0.0" $isSix }}:{{ .Values.replica.port }}"
key_env: TASKGATE_REPLICA_KEY
{{- end }}

{{- define "taskgate.telemetry" -}}
enabled: true
otlp:
  endpoint: {{ .Values.telemetry.endpoint | quote }}
  protocol: {{ .Values.telemetry.protocol }}
sampling:
  success_sample_rate: {{ .Values.telemetry.sampleRate }}
{{- with .Values.telemetry.resource }}
resource:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* name, secret, key: a variable from an existing Secret. */}}
{{- define "taskgate.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}

{{/* name, path: a variable with a fact about the pod. */}}
{{- define "taskgate.podVariable" -}}
- name: {{ .name }}
  valueFrom:
    fieldRef:
      fieldPath: {{ .path }}
{{- end }}

{{- define "taskgate.environment" -}}
# The kubelet's probes come from outside the pod's loopback.
- name: THOUGHTGATE_ADMIN_BIND
  value: 0.0.0.0
{{- if eq .Values.mode "gateway" }}
- name: THOUGHTGATE_SHUTDOWN_LINGER_SECS
  value: {{ .Values.gateway.lingerSeconds | quote }}
{{- end }}
{{- $secret := .Values.operators.existingSecret }}
{{- range .Values.operators.people }}
{{ include "taskgate.secretVariable" (dict "name" (include "taskgate.tokenVariable" .) "secret" $secret "key" (.key | default .name)) }}
{{- end }}
{{- range .Values.secretEnv }}
{{ include "taskgate.secretVariable" . }}
{{- end }}
{{- if include "taskgate.hasDatabase" . }}
{{- $postgres := .Values.store.postgres }}
{{- $replica := .Values.replica }}
{{ include "taskgate.secretVariable" (dict "name" (include "taskgate.storeVariable" .) "secret" $postgres.existingSecret "key" $postgres.urlKey) }}
{{ include "taskgate.secretVariable" (dict "name" "TASKGATE_REPLICA_KEY" "secret" $replica.existingSecret "key" $replica.signatureKey) }}
{{ include "taskgate.secretVariable" (dict "name" "TASKGATE_STATE_KEY" "secret" $replica.existingSecret "key" $replica.stateKey) }}
{{ include "taskgate.podVariable" (dict "name" "POD_IP" "path" "status.podIP") }}
{{- else if .Values.stateKey.existingSecret }}
{{ include "taskgate.secretVariable" (dict "name" "TASKGATE_STATE_KEY" "secret" .Values.stateKey.existingSecret "key" .Values.stateKey.key) }}
{{- end }}
{{- if or (include "taskgate.hasDatabase" .) .Values.telemetry.enabled }}
{{ include "taskgate.podVariable" (dict "name" "POD_NAME" "path" "metadata.name") }}
{{- end }}
{{- if .Values.telemetry.enabled }}
{{ include "taskgate.podVariable" (dict "name" "K8S_NAMESPACE" "path" "metadata.namespace") }}
{{ include "taskgate.podVariable" (dict "name" "NODE_NAME" "path" "spec.nodeName") }}
{{- if .Values.telemetry.headersSecret }}
{{ include "taskgate.secretVariable" (dict "name" "OTEL_EXPORTER_OTLP_HEADERS" "secret" .Values.telemetry.headersSecret "key" .Values.telemetry.headersKey) }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The ServiceAccount, if there is one but the namespace's default. */}}
{{- define "taskgate.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "taskgate.name" .) "" .Values.serviceAccount.create) }}
{{- end }}

{{/* What every pod of the chart has but its ServiceAccount: the chart's own is not there yet when the migration runs. */}}
{{- define "taskgate.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* The scheme of the admin port. */}}
{{- define "taskgate.adminScheme" -}}
{{ ternary "https" "http" (ne .Values.tls.adminSecret "") }}
{{- end }}

{{- define "taskgate.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The gateway's container; in a sidecar's place it starts before the server and ends after it. */}}
{{- define "taskgate.container" -}}
{{- $scheme := include "taskgate.adminScheme" . | upper -}}
name: taskgate
image: {{ include "taskgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.mode "sidecar" }}
restartPolicy: Always
{{- end }}
args: [serve, --config, /etc/thoughtgate/config.yaml]
env:
  {{- include "taskgate.environment" . | nindent 2 }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: mcp
    containerPort: 7467
  - name: admin
    containerPort: 7469
  {{- if include "taskgate.hasDatabase" . }}
  - name: replica
    containerPort: {{ .Values.replica.port }}
  {{- end }}
startupProbe:
  httpGet: {path: /health, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 90  # store.lock_wait, and 30 s
livenessProbe:
  httpGet: {path: /health, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 2
readinessProbe:
  httpGet: {path: /ready, port: admin, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 2
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
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
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The MCP server's container, with mode sidecar. Its preStop: calls under way may end before the server gets SIGTERM,
for the gateway answers once there are none. A port's name would be looked up in this container. */}}
{{- define "taskgate.server" -}}
{{- $server := .Values.server }}
{{- $idle := dict "path" (printf "/health/idle?wait=%d" (int $server.drainSeconds)) "port" 7469 "scheme" (include "taskgate.adminScheme" . | upper) }}
{{- $container := dict "name" "server" "image" $server.image "lifecycle" (dict "preStop" (dict "httpGet" $idle)) }}
{{- range $key := list "command" "args" "env" "securityContext" "resources" }}
{{- with get $server $key }}
{{- $_ := set $container $key . }}
{{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $container (deepCopy $server.container)) }}
{{- end }}
