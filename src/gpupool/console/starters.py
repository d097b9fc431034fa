"""Templates to begin with, beside the examples: one of each kind that people often make."""

from collections.abc import Mapping

STARTERS: Mapping[str, str] = {
    "deployment": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-app
spec:
  replicas: 1
  selector:
    matchLabels:
      app: my-app
  template:
    metadata:
      labels:
        app: my-app
    spec:
      containers:
        - name: main
          image: nginx
          ports:
            - containerPort: 80
          resources:
            limits:
              aliyun.com/gpu-mem: 3   # GiB of a card; a whole card: nvidia.com/gpu: 1
""",
    "job": """\
apiVersion: batch/v1
kind: Job
metadata:
  name: my-job
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "nvidia-smi"]
          resources:
            limits:
              aliyun.com/gpu-mem: 3
""",
    "cronjob": """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: my-cronjob
spec:
  schedule: "0 3 * * *"   # at three every night
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: busybox
              command: ["sh", "-c", "date"]
""",
    "service": """\
apiVersion: v1
kind: Service
metadata:
  name: my-app
spec:
  type: LoadBalancer
  selector:
    app: my-app
  ports:
    - name: http
      port: 80
      targetPort: 80
""",
    "configmap": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: my-settings
data:
  settings.ini: |
    [main]
    colour = blue
""",
    "secret": """\
apiVersion: v1
kind: Secret
metadata:
  name: my-secret
stringData:
  password: change-me
""",
}
