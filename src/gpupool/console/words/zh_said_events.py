"""Chinese: events, and what the API server and our admission refuse."""

_REASONS = {
    "Scheduled": "已调度",
    "FailedScheduling": "调度失败",
    "Preempted": "被抢占",
    "Reserved": "已保留资源",
    "TaintManagerEviction": "因污点驱逐",
    "Pulling": "正在拉取镜像",
    "Pulled": "镜像已就绪",
    "Created": "已创建",
    "Started": "已启动",
    "Killing": "正在停止",
    "BackOff": "等待重启",
    "Unhealthy": "健康检查失败",
    "Evicted": "已驱逐",
    "FailedMount": "挂载失败",
    "SuccessfulCreate": "创建成功",
    "SuccessfulDelete": "删除成功",
    "FailedCreate": "创建失败",
    "FailedDelete": "删除失败",
    "ScalingReplicaSet": "伸缩副本集",
    "BackoffLimitExceeded": "重试次数已用尽",
    "DeadlineExceeded": "超过期限",
    "SawCompletedJob": "任务已结束",
    "NodeReady": "节点就绪",
    "NodeNotReady": "节点未就绪",
    "NodeNotSchedulable": "节点不可调度",
    "NodeSchedulable": "节点可调度",
    "ScaledUp": "已扩容",
    "ScaledDown": "已缩容",
    "Autoscaled": "自动伸缩",
    "GpusFound": "发现 GPU 卡",
    "GpuCordoned": "GPU 卡不可调度",
    "GpuLost": "GPU 卡丢失",
    "GpuUnhealthy": "GPU 卡异常",
    "GpuSuspect": "GPU 卡可疑",
    "GpuHealthy": "GPU 卡恢复正常",
    "GpuIdle": "GPU 卡闲置",
    "GpuIdleScaledToZero": "闲置后缩容到零",
    "CardsGetIn": "GPU 卡接入方式",
    "QuotaExceeded": "超过配额",
    "ProvisioningSucceeded": "存储卷已创建",
}
_EVENTS = {
    "Successfully assigned {pod} to {name}": "已将 {pod} 调度到 {name}",
    'Container image "{name}" already present on machine and can be accessed by the pod': (
        "节点上已有镜像 {name}，容器组可以使用"
    ),
    "Container created": "容器已创建",
    "Container started": "容器已启动",
    "Stopping container {name}": "正在停止容器 {name}",
    "Back-off restarting failed container {name} in pod {selector}": (
        "容器组 {selector} 的容器 {name} 多次失败，等待后重启"
    ),
    "Created pod: {name}": "已创建容器组：{name}",
    "Deleted pod: {name}": "已删除容器组：{name}",
    "Create Pod {name} in StatefulSet {selector} successful": (
        "已为有状态 {selector} 创建容器组 {name}"
    ),
    "delete Pod {name} in StatefulSet {selector} successful": (
        "已删除有状态 {selector} 的容器组 {name}"
    ),
    "Scaled up replica set {name} from {count} to {number}": (
        "副本集 {name} 已从 {count} 扩容到 {number}"
    ),
    "Scaled down replica set {name} from {count} to {number}": (
        "副本集 {name} 已从 {count} 缩容到 {number}"
    ),
    "Added {count} node(s) to the pool": "已向节点池添加 {count} 个节点",
    "Job completed": "任务已完成",
    "Node {name} status is now: NodeReady": "节点 {name} 已就绪",
    "found {count} x {name}; driver {selector}": "发现 {count} 张 {name}；驱动版本 {selector}",
    "cards get into containers by NVIDIA's runtime, the default of the node": (
        "GPU 卡通过节点默认的 NVIDIA 运行时进入容器"
    ),
}
_REFUSALS = {
    "{name} is forbidden: {why}": "{name} 被拒绝：{why}",
    'admission webhook "{name}" denied the request: {complaints}': (
        "准入检查 {name} 拒绝：{complaints}"
    ),
    "exceeded quota: {name}, requested: {selector}, used: {command}, limited: {text}": (
        "超过配额 {name}：请求 {selector}，已使用 {command}，上限 {text}"
    ),
    'Pool "{name}": wanted machines of type {selector}; "{text}" is of type {command}.': (
        "节点池“{name}”需要规格为 {selector} 的实例，而“{text}”的规格为 {command}。"
    ),
    "{name}: wanted GPUs in limits, found {selector} in requests only": (
        "{name}：GPU 应写在 limits 中，而 {selector} 只写在 requests 中"
    ),
    "{name}: wanted a whole number, found {selector}": "{name}：应为整数，实际为 {selector}",
    "{name}: wanted 0 or more, found {selector}": "{name}：应为 0 或更大，实际为 {selector}",
    "{name}: wanted whole cards (nvidia.com/gpu) or a share of one (aliyun.com/gpu-mem), "
    "found both": (
        "{name}：只能请求整卡（nvidia.com/gpu）或显存份额（aliyun.com/gpu-mem），不能同时请求"
    ),
    "{name}: wanted a number of {selector}, at most {command} as the largest shared card has, "
    "found {text}; write the number without a unit": (
        "{name}：最大的共享卡有 {command} {selector}，请求了 {text}；请只写数字，不带单位"
    ),
    "{name}: wanted a number of {selector}, at most {command} as the largest shared card has, "
    "found {text}": "{name}：最大的共享卡有 {command} {selector}，请求了 {text}",
    "{name}: wanted a multiple of the {cards} cards of label {selector}, found {command}": (
        "{name}：应为标签 {selector} 所示 {cards} 张卡的倍数，实际为 {command}"
    ),
    "spec.nodeName: wanted none (the scheduler also chooses the card; use nodeSelector or "
    "affinity), found {name}": (
        "spec.nodeName：不能指定 {name}，因为调度器还要选择 GPU 卡；请使用 nodeSelector 或亲和性"
    ),
    'unknown field "{name}"': "未知字段“{name}”",
    "{name}: field not declared in schema": "{name}：未知字段",
    "{name}: Required value": "{name}：必填",
}
WORDS = {**_REASONS, **_EVENTS, **_REFUSALS}
