"""Chinese: events and the search."""

WORDS = {
    "Normal": "正常",
    "Warning": "告警",
    "{all} events, {warnings} of them warnings.": "{all} 个事件，其中 {warnings} 个告警。",
    "Object": "对象",
    "Kind": "种类",
    "Reason": "原因",
    "Times": "次数",
    "Last seen": "最近发生",
    "Nothing has happened here lately. Events are kept for an hour.": (
        "这里最近没有事件。事件保留一小时。"
    ),
    "Objects of every kind, by a part of their name.": "按名称的一部分查找各类对象。",
    "Objects found: {count}.": "找到 {count} 个对象。",
    "Not searched, because you may not list them: {kinds}.": ("因没有列出权限而未搜索：{kinds}。"),
    "Type a part of a name.": "请输入名称的一部分。",
    "A part of a name": "名称的一部分",
    "Search anything": "搜索",
    "Nothing has that in its name.": "没有名称包含此内容的对象。",
}
