"""Templates that many stories' charts are made of. The annotation tells kwok what becomes of a pod."""

POD_OF_VALUES = "{{ .Values.pod }}"

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {dev.pilothouse.dev/pod: POD}
    spec:
      containers: [{name: main, image: registry.example/none}]
"""
_HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-{{ .Release.Revision }}
  annotations: {"helm.sh/hook": "WHEN"}
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations: {dev.pilothouse.dev/pod: POD}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/none}]
"""


def deployment(pod: str = POD_OF_VALUES) -> str:
    """A Deployment of one pod."""
    return _DEPLOYMENT.replace("POD", pod)


def hook(when: str = "pre-install,pre-upgrade", pod: str = POD_OF_VALUES) -> str:
    """A hook of one pod, another one for each revision."""
    return _HOOK.replace("WHEN", when).replace("POD", pod)
