{{- define "kubelua.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubelua.selector" -}}
app.kubernetes.io/name: kubelua
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kubelua.labels" -}}
{{ include "kubelua.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "kubelua.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ default (include "kubelua.name" .) .Values.serviceAccount.name }}
{{- else -}}{{ required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "kubelua.configMap" -}}
{{- default (printf "%s-scripts" (include "kubelua.name" .)) .Values.existingConfigMap -}}
{{- end -}}

{{- define "kubelua.scripts" -}}
{{- range $name, $text := .Values.scripts }}
{{ $name }}: |
{{ $text | trimSuffix "\n" | indent 2 }}
{{- end }}
{{- end -}}

{{- /* Annotations of what `helm uninstall` makes and takes away again; the argument is its weight. */ -}}
{{- define "kubelua.hook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
