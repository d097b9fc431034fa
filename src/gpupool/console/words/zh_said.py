"""Chinese: what scheduler and agents say about pods and cards."""

_MESSAGES = {
    "{message} Reserved for it since {kept}": "{message}已为其保留：{kept}",
    "Reserved for it since {kept}": "已为其保留：{kept}",
    "Room that is free for it is left to larger pods: more GPUs are asked for than there are, and "
    "few nodes have as many untouched cards as those pods need. It gets the room if no larger pod "
    "comes within half an hour, or when it has waited for long.": (
        "可用于该 Pod 的空闲资源留给更大的 Pod：请求的 GPU 多于现有的 GPU，"
        "而拥有足够多未使用 GPU 卡的节点很少。"
        "若半小时内没有更大的 Pod 到来，或该 Pod 已等待较久，则会得到该资源。"
    ),
    "{name}: room on {selector}, card {text}, expected in {wait} from then.": (
        "{selector} 的 GPU 卡 {text}（自 {name} 起），预计此后 {wait}内可用。"
    ),
    "{name}: room on {selector}, cards {text}, expected in {wait} from then.": (
        "{selector} 的 GPU 卡 {text}（自 {name} 起），预计此后 {wait}内可用。"
    ),
    "{count} s": "{count} 秒",
    "{count} min": "{count} 分钟",
    "{count} h": "{count} 小时",
    ", ": "，",
    "; ": "；",
    "{message} GPUs: {summary}.": "{message}GPU 卡：{summary}。",
    "GPUs: {summary}.": "{summary}。",
    "{message} preemption: {room}": "{message}抢占：{room}",
    "0/{count} nodes are available: {reasons}.": "{count} 个节点均不可用：{reasons}。",
    "{count}/{all} nodes are available.": "{all} 个节点中有 {count} 个可用。",
    "{count} {reason}": "{reason}（{count} 个节点）",
    "no nodes available to schedule pods": "没有可供调度的节点",
    "not eligible due to preemptionPolicy=Never.": "preemptionPolicy 为 Never，不可抢占。",
    "not eligible due to a terminating pod on the nominated node.": (
        "指定节点上有正在终止的容器组，暂不抢占。"
    ),
    "the only card is offered in shares (aliyun.com/gpu-mem), not whole": (
        "唯一的 GPU 卡按份额提供（aliyun.com/gpu-mem），不提供整卡"
    ),
    "the only card is offered whole (nvidia.com/gpu), not in shares": (
        "唯一的 GPU 卡只提供整卡（nvidia.com/gpu），不按份额提供"
    ),
    "all {cards} cards are offered in shares (aliyun.com/gpu-mem), not whole": (
        "全部 {cards} 张卡按份额提供（aliyun.com/gpu-mem），不提供整卡"
    ),
    "all {cards} cards are offered whole (nvidia.com/gpu), not in shares": (
        "全部 {cards} 张卡只提供整卡（nvidia.com/gpu），不按份额提供"
    ),
    "the pod accepts none of the cards there ({facts})": "容器组不接受那里的任何卡（{facts}）",
    "no node has more than {most}, {wanted_count} wanted": (
        "单个节点最多有 {most} 张卡，需要 {wanted_count} 张"
    ),
    "{free} of {cards} free, at most {most} on one node": (
        "{cards} 张卡中有 {free} 张空闲，单个节点最多 {most} 张"
    ),
    "none of {cards} has {units} units free, the best has {best}": (
        "{cards} 张卡中没有一张空闲 {units} GiB，最多空闲 {best} GiB"
    ),
    "{free} of {cards} with {units} units and {percent} % of compute free, "
    "at most {most} on one node": (
        "{cards} 张卡中有 {free} 张空闲 {units} GiB 显存和 {percent}% 算力，单个节点最多 {most} 张"
    ),
    "{free} of {cards} with {units} units free, at most {most} on one node": (
        "{cards} 张卡中有 {free} 张空闲 {units} GiB 显存，单个节点最多 {most} 张"
    ),
}
_REASONS = {
    "node(s) had no GPU inventory": "没有 GPU 卡清单",
    "node(s) only shared their GPUs by memory": "只按显存共享 GPU 卡",
    "node(s) only gave out whole GPUs": "只提供整卡",
    "node(s) had too few GPUs of the models or uuids that the pod accepts": (
        "容器组所接受型号或 UUID 的 GPU 卡不足"
    ),
    "node(s) had no GPU that the pod's card group may use": "没有容器组的卡组可用的 GPU 卡",
    "node(s) gave GPUs only to pods with runtimeClassName {name}": (
        "只向 runtimeClassName 为 {name} 的容器组提供 GPU 卡"
    ),
    "node(s) had no runtime class {name} for GPUs": "没有用于 GPU 卡的运行时类 {name}",
    "node(s) didn't have free ports for the requested pod ports": "所需端口已被占用",
    "node(s) didn't match Pod's node affinity/selector": "不符合容器组的节点亲和性或节点选择器",
    "node(s) didn't match the requested node name": "不是指定的节点",
    "node(s) were unschedulable": "节点不可调度",
    "node(s) had volume node affinity conflict": "存储卷不能从该节点访问",
    "node(s) had no available volume zone": "存储卷不在该节点的可用区",
    "node(s) didn't match pod affinity rules": "不符合容器组亲和性规则",
    "node(s) didn't match pod anti-affinity rules": "不符合容器组反亲和性规则",
    "node(s) didn't satisfy existing pods anti-affinity rules": ("不符合已有容器组的反亲和性规则"),
    "node(s) didn't match pod topology spread constraints": "不符合拓扑分布约束",
    "node(s) didn't match pod topology spread constraints (missing required label)": (
        "不符合拓扑分布约束（缺少所需标签）"
    ),
    "node(s) had untolerated taint {name}": "有容器组不能容忍的污点 {name}",
    "node(s) exceed max volume count": "存储卷数量已达上限",
    "Too many pods": "容器组数量已达上限",
    "Insufficient GPU Memory in one device": "单卡显存不足",
    "Insufficient GPU compute in one device": "单卡算力不足",
    "Insufficient GPU Memory in {cards} devices": "显存充足的卡不足 {cards} 张",
    "Insufficient GPU compute in {cards} devices": "算力充足的卡不足 {cards} 张",
    "Insufficient GPUs for all containers at once": "GPU 卡不能同时满足所有容器",
    "Insufficient {name}": "{name} 不足",
    "Preemption is not helpful for scheduling": "抢占无助于调度",
    "No preemption victims found for incoming pod": "没有可以抢占的容器组",
    "pod has unbound immediate PersistentVolumeClaims": "容器组有尚未绑定的存储声明",
    'persistentvolumeclaim "{name}" not found': "没有存储声明“{name}”",
    'persistentvolumeclaim "{name}" is being deleted': "存储声明“{name}”正在删除",
}
_CARDS = {
    "card {number}: {state}": "GPU 卡 {number}：{state}",
    "{state}; {mib} MiB held by processes outside Kubernetes": (
        "{state}；{mib} MiB 被 Kubernetes 之外的进程占用"
    ),
    "closed: which cards pod {pod} (and {more} more) holds cannot be read": (
        "已关闭：无法读取容器组 {pod}（以及另外 {more} 个）占用了哪些卡"
    ),
    "closed: which cards pod {pod} holds cannot be read": (
        "已关闭：无法读取容器组 {pod} 占用了哪些卡"
    ),
    "would do": "可用",
    "left out: {name}, {facts} wanted": "不考虑：{name}，需要{facts}",
    "offered in shares only, a whole card wanted": "只按份额提供，需要整卡",
    "offered whole only, a share wanted": "只提供整卡，需要显存份额",
    "has less than one unit of memory": "显存不足一个单位",
    "not all of it is free": "未完全空闲",
    "held whole by {holders}": "整卡被 {holders} 占用",
    "shared by {holders}": "由 {holders} 共享",
    "{room}; {holders} holds some of it": "{room}；{holders} 占用其中一部分",
    "{room}; {holders} hold some of it": "{room}；{holders} 占用其中一部分",
    "{free} of {all} units free, {units} wanted": "{all} GiB 中空闲 {free} GiB，需要 {units} GiB",
    "{free} % of compute free, {percent} % wanted": "空闲算力 {free}%，需要 {percent}%",
    "no model {models}": "型号不为 {models}",
    "model {models}": "型号 {models}",
    "no uuid {models}": "UUID 不为 {models}",
    "uuid {models}": "UUID {models}",
    "{models} or {more} more": "{models} 或另外 {more} 个",
    "{name} or {models}": "{name} 或 {models}",
    "{names} and {more} more": "{names} 以及另外 {more} 个",
    "{names} and {pod}": "{names} 和 {pod}",
    "{pod} (kept for it)": "{pod}（为其保留）",
    "suspect ({why})": "可疑（{why}）",
    "unhealthy ({why})": "不健康（{why}）",
    "cordoned ({why})": "不可调度（{why}）",
    "lost ({why})": "丢失（{why}）",
}
_HEALTH = {
    "XID {number}: {why}": "XID {number}：{why}",
    "it does not answer any more": "不再响应",
    "by a person": "人工设置",
    "MIG mode is on: its parts cannot be offered yet": "已启用 MIG 模式：暂不能提供其分区",
    "{mib} MiB are less than a unit of {unit}": "{mib} MiB 不足一个单位（{unit} MiB）",
    "the driver cannot read it: {why}": "驱动无法读取此卡：{why}",
    "{count} uncorrected memory errors": "{count} 个未纠正的显存错误",
    "an error that is not in our list": "未列出的错误",
    "see NVIDIA's list of XIDs": "请参阅 NVIDIA 的 XID 列表",
    "the program's work took too long": "程序的任务耗时过长",
    "the program made the compute engine fail": "程序导致计算引擎出错",
    "the program used memory that is not its own": "程序访问了不属于它的显存",
    "damaged commands reached the card": "此卡收到损坏的命令",
    "error in the driver's firmware": "驱动固件出错",
    "the program was stopped by an error of its own": "程序因自身错误停止",
    "the program was ended, and its work cleaned up": "程序已结束，其任务已清理",
    "the card stopped working": "此卡停止工作",
    "memory error that could not be corrected": "无法纠正的显存错误",
    "the card's power cable is not connected": "此卡的电源线未连接",
    "the card's microcontroller stopped": "此卡的微控制器停止",
    "the card's microcontroller halted": "此卡的微控制器挂起",
    "bad memory was taken out of use": "损坏的显存已停用",
    "bad memory could not be taken out of use": "损坏的显存无法停用",
    "the program made the video decoder fail": "程序导致视频解码器出错",
    "the program made the graphics engine fail": "程序导致图形引擎出错",
    "NVLink error": "NVLink 错误",
    "the card has fallen off the bus": "此卡已从总线上掉线",
    "many memory errors that could be corrected": "大量已纠正的显存错误",
    "memory error that hit one program only": "只影响一个程序的显存错误",
    "memory error that may have hit every program": "可能影响所有程序的显存错误",
    "the program could not be switched in time": "未能及时切换程序",
    "the card's system processor does not answer": "此卡的系统处理器没有响应",
    "error of the card's system processor": "此卡的系统处理器出错",
    "memory error from which the card did not recover": "此卡未能从显存错误中恢复",
    "the card could not be started": "此卡无法启动",
    "the driver's advice about the card has changed": "驱动对此卡的建议已改变",
}
_NEXT_STEPS = {
    "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
    "or add a node.": (
        "等待某个容器组结束，或者删除一个占用 GPU 卡的容器组（用 gpupool gpu pods 查看），"
        "或者添加节点。"
    ),
    "See why cards are out of use (gpupool gpu list), or add a node.": (
        "查看 GPU 卡不可用的原因（gpupool gpu list），或者添加节点。"
    ),
    "Change the node affinity {affinity} ({nodes}), or add a node that meets it.": (
        "请修改节点亲和性 {affinity}（{nodes}），或者添加满足它的节点。"
    ),
    "Start a pod with {selector} (namespace {name}), "
    "or change the pod affinity: no such pod runs.": (
        "请在命名空间 {name} 中启动匹配 {selector} 的容器组，"
        "或者修改容器组亲和性：目前没有这样的容器组。"
    ),
    "Request {other}, or add a node that offers {offer}.": (
        "改为申请{other}，或者添加提供{offer}的节点。"
    ),
    "Request {most} or fewer cards, or add a node with {count}.": (
        "最多申请 {most} 张 GPU 卡，或者添加有 {count} 张卡的节点。"
    ),
    "Request {most} or fewer units, or add a node with larger cards.": (
        "最多申请 {most} GiB 显存，或者添加显存更大的节点。"
    ),
    "a share (aliyun.com/gpu-mem)": "显存份额（aliyun.com/gpu-mem）",
    "a whole card (nvidia.com/gpu)": "整卡（nvidia.com/gpu）",
    "Change nodeSelector {selector} ({nodes}), or label a node: {command}": (
        "更改 nodeSelector {selector}（{nodes}），或者给节点加标签：{command}"
    ),
    "nodes have {models}": "节点上的值为 {models}",
    "no node has that label": "没有节点有此标签",
}
_RESIZES = {
    "container {name} has whole cards": "容器 {name} 占用整卡",
    "container {name} is an init container": "容器 {name} 是初始化容器",
    "container {name} runs without the limiter: nothing would tell it of another share, "
    "or hold it to that": "容器 {name} 没有限制器：无法告知它新的份额，也无法限制它",
    "container {name}: wanted a multiple of its {cards} cards, found {units}": (
        "容器 {name}：应为其 {cards} 张卡的整数倍，实际为 {units}"
    ),
    "card {number} has {all} units in all, {units} are asked for": (
        "GPU 卡 {number} 共有 {all} GiB，申请 {units} GiB"
    ),
    "card {number} of node {name} has {all} units; others hold {others}, "
    "so this pod can have {most} of it, not {units}": (
        "节点 {name} 的 GPU 卡 {number} 共有 {all} GiB，其他容器组占用 {others} GiB，"
        "此容器组最多可得 {most} GiB，而不是 {units} GiB"
    ),
    "container {name} uses {mib} MiB of card {number}, more than the {most} MiB of its new "
    "share (if its programs have ended by now, run nvidia-smi in it, and try again)": (
        "容器 {name} 在 GPU 卡 {number} 上使用了 {mib} MiB，超过新份额的 {most} MiB"
        "（如果其程序已经结束，请在容器中运行 nvidia-smi 后重试）"
    ),
    "card {text} is not on node {name} any more": "GPU 卡 {text} 已不在节点 {name} 上",
    "quota {name} is {all}: {count} used, {wanted_count} wanted. Raise it with: {command}; "
    "{quotas}": (
        "配额 {name} 为 {all}，已用 {count}，需要 {wanted_count}。提高配额：{command}；{quotas}"
    ),
    "quota {name} is {all}: {count} used, {wanted_count} wanted. Raise it with: {command}": (
        "配额 {name} 为 {all}，已用 {count}，需要 {wanted_count}。提高配额：{command}"
    ),
    "quota {name} of namespace {selector} has {all} units of gpu-mem; others have {others}, "
    "so this pod can have {most}, not {units}": (
        "命名空间 {selector} 的配额 {name} 为 {all} GiB 显存，其他容器组占用 {others} GiB，"
        "此容器组最多可得 {most} GiB，而不是 {units} GiB"
    ),
    "container {name}: {units} units ({selector}) -> {count} units ({command})": (
        "容器 {name}：{units} GiB（{selector}）→ {count} GiB（{command}）"
    ),
    "it has just that": "已是如此",
    "its node is not there": "其节点不存在",
    "it has no share of a card": "它没有显存份额",
}
_MANIFESTS = {
    "not valid YAML: {name}": "YAML 无效：{name}",
    "wanted an object with apiVersion, kind and metadata": (
        "需要包含 apiVersion、kind 和 metadata 的对象"
    ),
    "metadata.name: wanted a name": "metadata.name：需要名称",
    "{name}: wanted a text": "{name}：需要文本",
    "the cluster has no kind {name} in {selector}": "集群的 {selector} 中没有种类 {name}",
    '{name}: wanted "{selector}", found "{command}": it cannot change': (
        "{name}：应为“{selector}”，实际为“{command}”：不可更改"
    ),
}
_OTHERS = {
    "{count} of {all} nodes are ready": "{all} 个节点中有 {count} 个就绪",
    "all cards are healthy": "所有 GPU 卡健康",
    "card {number} ({name}) is {health}: {why}; {more_cards}": (
        "GPU 卡 {number}（{name}）{health}：{why}；{more_cards}"
    ),
    "card {number} ({name}) is {health}: {why}": "GPU 卡 {number}（{name}）{health}：{why}",
    "kubelet has sufficient memory available": "内存充足",
    "kubelet has no disk pressure": "磁盘没有压力",
    "kubelet has sufficient PID available": "进程号充足",
    "kubelet is posting ready status": "kubelet 正在上报就绪状态",
    "Reached expected number of succeeded pods": "成功的容器组已达到预期数量",
    "Job has reached the specified backoff limit": "已达到重试次数上限",
    "Job was active longer than specified deadline": "运行时间超过期限",
}
_OF_CARDS = {**_CARDS, **_HEALTH, **_NEXT_STEPS, **_RESIZES}
WORDS = {**_MESSAGES, **_REASONS, **_OF_CARDS, **_MANIFESTS, **_OTHERS}
