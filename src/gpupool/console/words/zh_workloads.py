"""Chinese: workloads, and creating them from a template."""

WORDS = {
    "Deployments": "无状态",
    "StatefulSets": "有状态",
    "Create from template": "使用模板创建",
    "Create": "创建",
    "Of objects that name none.": "用于没有指定命名空间的对象。",
    "Template": "模板",
    "Sample templates": "示例模板",
    "Dry run": "试运行",
    "The API server would accept it: {names}": "API Server 可以接受：{names}",
    "Applied: {names}": "已应用：{names}",
    "line {line}: {words}": "第 {line} 行：{words}",
    "{ready} of {all} have all their pods.": "{all} 个中有 {ready} 个的容器组全部就绪。",
    "Scale": "伸缩",
    "Restart": "重新部署",
    "There are none here yet.": "这里还没有。",
    "Scale {name}": "伸缩 {name}",
    "Pods wanted": "期望的容器组数量",
    "{name} is to have {count} pods.": "{name} 将有 {count} 个容器组。",
    "Restart {name}": "重新部署 {name}",
    "Its pods are replaced one after another.": "其容器组将逐个被替换。",
    "The pods of {name} are being replaced.": "正在替换 {name} 的容器组。",
    "Delete {name}": "删除 {name}",
    "It is deleted with all its pods.": "它和它的全部容器组都将被删除。",
    "{name} is being deleted.": "正在删除 {name}。",
    "DaemonSets": "守护进程集",
    "Jobs": "任务",
    "CronJobs": "定时任务",
    '{kind} "{name}" in namespace "{namespace}"': "命名空间“{namespace}”中的 {kind}“{name}”",
    "It has none.": "无。",
    "It is being deleted.": "正在删除。",
    "It wants no pods.": "期望的容器组数量为 0。",
    "{ready} of {wanted} pods are ready.": "{wanted} 个容器组中有 {ready} 个就绪。",
    "Pods cannot be made: {why}": "无法创建容器组：{why}",
    "{done} of {all} are complete, {failed} failed.": (
        "{all} 个中有 {done} 个完成，{failed} 个失败。"
    ),
    "Complete": "已完成",
    "Suspended": "已挂起",
    "Succeeded": "成功次数",
    "{state}: {done} of {all} runs succeeded.": "{state}：{all} 次运行中有 {done} 次成功。",
    "{all} CronJobs, {count} of them suspended.": "{all} 个定时任务，其中 {count} 个已挂起。",
    "Suspended: it makes no Jobs until it is resumed.": "已挂起：恢复之前不会创建任务。",
    "It makes a Job at {schedule}. Running now: {count}.": (
        "按 {schedule} 创建任务。正在运行：{count}。"
    ),
    "On schedule": "按计划",
    "Schedule": "计划",
    "Last run": "最近运行",
    "Suspend": "挂起",
    "Resume": "恢复",
    "Suspend {name}": "挂起 {name}",
    "Resume {name}": "恢复 {name}",
    "{name} is suspended.": "{name} 已挂起。",
    "{name} goes on.": "{name} 已恢复。",
    "Its pods end, and it makes no new ones until it is resumed.": (
        "其容器组将结束，恢复之前不会创建新的容器组。"
    ),
    "It makes its pods again.": "它将重新创建容器组。",
    "It makes no new Jobs. Those that run stay.": "不再创建新任务，正在运行的任务不受影响。",
    "It makes Jobs by its schedule again.": "重新按计划创建任务。",
    "It is deleted with its Jobs and their pods.": "它和它的任务及其容器组都将被删除。",
    "Run {name} now": "立即运行 {name}",
    "Run now": "立即运行",
    "It makes one Job at once. Its schedule stays as it is.": "立即创建一个任务，计划不变。",
    "Job {name} is made.": "已创建任务 {name}。",
    # editing as YAML
    "Edit YAML": "编辑 YAML",
    "Edit {kind} {name}": "编辑 {kind} {name}",
    "Nothing changes before you have seen what would change.": (
        "在您看到将要发生的更改之前，不会有任何改动。"
    ),
    "Show changes": "查看更改",
    "Save these changes": "保存这些更改",
    "{name} is saved.": "{name} 已保存。",
    "Nothing would change.": "没有任何更改。",
    "The API server would accept it. This would change:": "API Server 可以接受。将发生以下更改：",
    "The API server would accept it. It is too long to show what would change.": (
        "API Server 可以接受。内容过长，无法显示更改。"
    ),
    "Somebody else has changed it since you opened it, so nothing is saved. Below are the"
    " differences between what it is now and your text: lines with - are theirs and would go."
    " Change your text if you want to keep them, then look at the changes again.": (
        "在您打开之后，其他人修改了该对象，因此没有保存。下面是它的当前内容与您的文本之间的差异："
        "带 - 的行是对方的内容，将会丢失。如需保留，请修改您的文本，然后再次查看更改。"
    ),
    # rollouts
    "Rollout history": "历史版本",
    "Revision": "版本",
    "{number}, the present one": "{number}（当前版本）",
    "Cause": "变更原因",
    "Back to this": "回滚到此版本",
    "There are no revisions yet.": "还没有历史版本。",
    "Undo rollout": "回滚",
    "{name}: back to revision {number}": "{name}：回滚到版本 {number}",
    "Back to revision {number}": "回滚到版本 {number}",
    "Its pods are replaced one after another. In the pods, this changes:": (
        "其容器组将逐个被替换。容器组将发生以下更改："
    ),
    "Its pods are already as in this revision.": "其容器组已与此版本相同。",
    "{name} is paused: resume it first.": "{name} 已暂停，请先恢复。",
    "{name} goes back to revision {number}.": "{name} 正在回滚到版本 {number}。",
    "an earlier revision of {name}": "{name} 更早的版本",
    "revision {number} of {name}": "{name} 的版本 {number}",
    # creating
    "Create {what}": "创建 {what}",
    "To begin with": "空白模板",
    "Your templates": "我的模板",
    "Name of the template": "模板名称",
    "Keep as a template": "另存为模板",
    "Wanted letters, digits, hyphens, dots: at most 63 of them.": (
        "只能使用字母、数字、连字符和点，最多 63 个。"
    ),
    "Template {name} is kept in namespace {namespace}.": (
        "模板 {name} 已保存到命名空间 {namespace}。"
    ),
    "Delete template {name}": "删除模板 {name}",
    "What was made from it stays.": "用它创建的对象不受影响。",
    "Template {name} is deleted.": "模板 {name} 已删除。",
    # creating by a form
    "Create by a form": "使用表单创建",
    "none": "无",
    "a share of a card": "一张卡的显存份额",
    "whole cards": "整卡",
    "no card": "不使用 GPU 卡",
    "Command": "启动命令",
    "Leave it empty to run the command of the image.": "留空则使用镜像的命令。",
    "Share, in GiB": "显存份额（GiB）",
    "Whole cards": "整卡数量",
    "any": "任意",
    "Environment": "环境变量",
    "Service": "服务",
    "{name} is created.": "{name} 已创建。",
    "To see where it fits, you need the right to see all nodes and pods.": (
        "要查看可以放置的位置，需要查看全部节点和容器组的权限。"
    ),
    "The API server refuses such a pod: {why}": "API Server 拒绝这样的容器组：{why}",
    "Fits on no node right now. {why}": "目前没有节点可以容纳。{why}",
    "Fits on {fits} of {all} nodes right now.": "目前 {all} 个节点中有 {fits} 个可以容纳。",
    "One would go to {node}, card {cards}.": "一个容器组将调度到 {node}，GPU 卡 {cards}。",
    "One would go to {node}.": "一个容器组将调度到 {node}。",
    "Go on in the editor": "在编辑器中继续",
    "Kept as it is typed; the form has no field for it: {fields}": (
        "以下内容在表单中没有对应字段，按 YAML 原样保留：{fields}"
    ),
    "Wanted a Deployment, a StatefulSet or a Job.": "需要一个无状态、有状态或任务。",
    "The form cannot show this: {fields}. You can go on in the editor.": (
        "表单无法显示：{fields}。可以在编辑器中继续。"
    ),
    "Suggestions": "补全建议",
    "Show what it makes": "查看将要创建的内容",
    "Name the ports of the container by numbers.": "请用数字填写容器端口。",
    "A service needs a port.": "服务需要端口。",
    "It cannot be split into words: {why}": "无法拆分命令：{why}",
}
