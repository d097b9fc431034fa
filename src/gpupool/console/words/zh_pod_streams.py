"""Chinese: logs and terminals of pods."""

WORDS = {
    "Logs": "日志",
    "Terminal": "终端",
    "Logs of {name}": "{name} 的日志",
    "What container {container} writes.": "容器 {container} 的输出。",
    "The run before this one": "上一次运行",
    "Only lines with": "只显示包含以下内容的行",
    "Stay at the end": "停留在末尾",
    "Download": "下载",
    "Connecting …": "正在连接……",
    "Follows.": "实时更新中。",
    "The log has ended.": "日志已结束。",
    "The connection is interrupted. Reload the page to go on.": "连接已中断，请刷新页面以继续。",
    "Older lines are not shown. Download has all of them.": "较早的行未显示，下载可获得全部内容。",
    "As plain text": "纯文本",
    "Terminal of {name}": "{name} 的终端",
    "A shell in container {container}.": "容器 {container} 中的 Shell。",
    "Shell": "Shell",
    "Connected.": "已连接。",
    "The shell has ended.": "Shell 已结束。",
    "The connection has ended.": "连接已结束。",
    "Connect again": "重新连接",
    "A terminal needs scripts. The command below does the same.": (
        "终端需要启用脚本。下面的命令作用相同。"
    ),
    "Keys go to the shell, Tab and Ctrl-C as well. Shift+Tab leaves the terminal. Closing the page "
    "ends the shell.": (
        "按键会发送到 Shell，包括 Tab 和 Ctrl-C。Shift+Tab 离开终端。关闭页面会结束 Shell。"
    ),
}
