{{- define "gpupool.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels of every object. Selectors of pods use other labels. */}}
{{- define "gpupool.labels" -}}
app.kubernetes.io/part-of: gpupool
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "gpupool.env" -}}
{{- if .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .Values.apiServer.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .Values.apiServer.port | quote }}
{{- end }}
{{- end }}

{{/* An unprivileged user who may write to /tmp only. */}}
{{- define "gpupool.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The service account that writes allocations; admission refuses allocations of everybody else. */}}
{{- define "gpupool.schedulerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ if eq .Values.mode "extender" }}gpupool-extender{{ else }}gpupool-scheduler{{ end }}
{{- end }}

{{/* What admission writes into spec.schedulerName of GPU pods. Values of an older chart (--reuse-values) do not have the name. */}}
{{- define "gpupool.schedulerName" -}}
{{ if eq .Values.mode "extender" }}{{ .Values.extender.schedulerName | default "default-scheduler" }}{{ else }}gpupool-scheduler{{ end }}
{{- end }}

{{/* Annotations of objects that Helm creates after `helm uninstall`, and deletes when the job is done. */}}
{{- define "gpupool.cleanupHook" -}}
helm.sh/hook: post-delete
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* Of the objects of `helm test`: made for it, and deleted when it has succeeded, or before the next. */}}
{{- define "gpupool.testHook" -}}
helm.sh/hook: test
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
