{{- define "janitor.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* A CronJob's name has room for 52 characters: its Jobs get eleven more. */}}
{{- define "janitor.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of what has no namespace: two releases of one name in two namespaces must not meet. */}}
{{- define "janitor.clusterName" -}}
{{- printf "%s.%s" .Release.Namespace (include "janitor.fullname" .) -}}
{{- end -}}

{{- define "janitor.selectorLabels" -}}
app.kubernetes.io/name: {{ include "janitor.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "janitor.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "janitor.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "janitor.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "janitor.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "janitor.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.registry -}}{{- $name = printf "%s/%s" (trimSuffix "/" .Values.image.registry) $name -}}{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What cannot work is refused here, where a person reads it, and not in a pod. */}}
{{- define "janitor.check" -}}
{{- $discovering := and .Values.settings.discover .Values.settings.discoverAllow -}}
{{- if not (or .Values.backends $discovering .Values.extraEnv .Values.extraEnvFrom) -}}
{{- fail "backends: give at least one backend, as in --set backends[0].url=azblob://state, or settings.discover with settings.discoverAllow" -}}
{{- end -}}
{{- if .Values.delete -}}
{{- range .Values.backends -}}
{{- if not .exclusive -}}
{{- fail (printf "delete wants `exclusive: true` for the backend %s: your word that every pod that writes to it runs in this cluster" (regexReplaceAll "//[^/@]*@" .url "//…@")) -}}
{{- end -}}
{{- end -}}
{{- if and $discovering (not .Values.exclusiveDiscovered) -}}
{{- fail "delete with settings.discover wants `exclusiveDiscovered: true`: your word that every pod that writes to those backends runs in this cluster" -}}
{{- end -}}
{{- end -}}
{{- if ne .Values.mode "deployment" -}}
{{- range $name, $part := .Values.monitoring -}}
{{- if $part.enabled -}}
{{- fail (printf "monitoring.%s wants `mode: deployment`: a CronJob's pods are gone before anybody scrapes them" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.probe.enabled (not .Values.probe.namespaces) -}}
{{- fail "probe.enabled wants probe.namespaces: where the command may be run" -}}
{{- end -}}
{{- end -}}

{{- define "janitor.config" -}}
{{- $config := deepCopy .Values.settings -}}
{{- $backends := list -}}
{{- range $index, $backend := .Values.backends -}}
{{- $env := deepCopy (default dict $backend.env) -}}
{{- if $backend.secret -}}
{{- range $variable, $key := $backend.secret.keys -}}
{{- $_ := set $env $variable (dict "file" (printf "/etc/pulumi-lock-janitor/backend-%d/%s" $index $variable)) -}}
{{- end -}}
{{- end -}}
{{- $entry := dict "url" $backend.url "exclusive" (default false $backend.exclusive) -}}
{{- if $env -}}{{- $_ := set $entry "env" $env -}}{{- end -}}
{{- $backends = append $backends $entry -}}
{{- end -}}
{{- if $backends -}}{{- $_ := set $config "backends" $backends -}}{{- end -}}
{{- $_ := set $config "delete" .Values.delete -}}
{{- if .Values.namespaces -}}{{- $_ := set $config "namespaces" .Values.namespaces -}}{{- end -}}
{{- if eq .Values.mode "deployment" -}}{{- $_ := set $config "interval" .Values.deployment.interval -}}{{- end -}}
{{- if .Values.probe.enabled -}}{{- $_ := set $config "probeProcesses" true -}}{{- end -}}
{{- if .Values.requeue.enabled -}}{{- $_ := set $config "requeueStacks" true -}}{{- end -}}
{{- if .Values.stackEvents.enabled -}}{{- $_ := set $config "stackEvents" true -}}{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* `root` is the chart's scope; `labels` and `annotations` are what only this kind of pod has. */}}
{{- define "janitor.podMetadata" -}}
{{- $values := .root.Values -}}
{{- $labels := include "janitor.labels" .root | fromYaml -}}
{{- if $values.istio.optOut -}}
{{- $labels = merge (dict "sidecar.istio.io/inject" "false" "istio.io/dataplane-mode" "none") $labels -}}
{{- end -}}
{{- $annotations := dict "checksum/config" (include "janitor.config" .root | sha256sum) -}}
labels:
  {{- toYaml (merge (default dict .labels) $labels $values.podLabels) | nindent 2 }}
annotations:
  {{- toYaml (merge (default dict .annotations) $annotations $values.podAnnotations) | nindent 2 }}
{{- end -}}

{{/* The spec of every pod: `root` is the chart's scope, `args` the command's words, `more` what only this container has. */}}
{{- define "janitor.podSpec" -}}
{{- $more := .more -}}
{{- $args := .args -}}
{{- with .root -}}
serviceAccountName: {{ include "janitor.serviceAccountName" . }}
automountServiceAccountToken: true
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- $security := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
  {{- toYaml (mergeOverwrite $security (deepCopy .Values.podSecurityContext)) | nindent 2 }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
containers:
  - name: janitor
    image: {{ include "janitor.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
      {{- toYaml $args | nindent 6 }}
    env:
      # The janitor's own pod must be in the list of pods, or the list is not believed.
      - name: POD_NAME
        valueFrom: { fieldRef: { fieldPath: metadata.name } }
      - name: POD_NAMESPACE
        valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
      - name: HOME
        value: /tmp
      {{- with .Values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .Values.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $more }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: { drop: [ALL] }
      readOnlyRootFilesystem: true
    {{- with .Values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: config
        mountPath: /etc/pulumi-lock-janitor/config
        readOnly: true
      - name: scratch
        mountPath: /tmp
      {{- range $index, $backend := .Values.backends }}
      {{- if $backend.secret }}
      - name: backend-{{ $index }}
        mountPath: /etc/pulumi-lock-janitor/backend-{{ $index }}
        readOnly: true
      {{- end }}
      {{- end }}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "janitor.fullname" . }}
  - name: scratch
    emptyDir: { sizeLimit: 64Mi }
  {{- range $index, $backend := .Values.backends }}
  {{- with $backend.secret }}
  - name: backend-{{ $index }}
    secret:
      secretName: {{ .name }}
      items:
        {{- range $variable, $key := .keys }}
        - { key: {{ $key | quote }}, path: {{ $variable | quote }} }
        {{- end }}
  {{- end }}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}
