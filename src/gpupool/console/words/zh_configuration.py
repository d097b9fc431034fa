"""Chinese: ConfigMaps and Secrets."""

WORDS = {
    "ConfigMaps": "配置项",
    "Secrets": "保密字典",
    "{count} ConfigMaps.": "{count} 个配置项。",
    "{count} Secrets. Their values are hidden until you ask for one.": (
        "{count} 个保密字典。值在您要求查看之前保持隐藏。"
    ),
    "Entries": "条目",
    "and {count} more": "以及另外 {count} 个",
    "It has {count} entries.": "共有 {count} 个条目。",
    "They cannot be changed any more.": "内容已不可更改。",
    "Content": "内容",
    "It is empty.": "内容为空。",
    "{count} bytes that are no text": "{count} 字节，不是文本",
    "… and {count} more characters": "……以及另外 {count} 个字符",
    "Bytes": "字节数",
    "Value": "值",
    "Hidden until you ask for it": "要求查看之前保持隐藏",
    "Show a value of {name}": "查看 {name} 的值",
    "Make sure that nobody else sees your screen.": "请确保没有其他人看到您的屏幕。",
    "It is no text. This is its base64:": "内容不是文本，以下为 base64：",
    "Pods that run keep what they have read. New ones that need it do not start.": (
        "正在运行的容器组保留已读取的内容，需要它的新容器组将无法启动。"
    ),
}
