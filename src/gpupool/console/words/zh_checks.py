"""Chinese: what is wrong with a manifest."""

WORDS = {
    'unknown field "{field}"': "未知字段“{field}”",
    'unknown field "{field}"; is it "{other}"?': "未知字段“{field}”，是否应为“{other}”？",
    "{field}: wanted {wanted}, found {found}": "{field}：应为{wanted}，实际为 {found}",
    "a text": "文本",
    "a whole number": "整数",
    "a number": "数字",
    "true or false": " true 或 false",
    "a list": "列表",
    "fields": "字段",
    " or ": "或",
    "one of {values}": "以下之一：{values}",
    "not valid YAML: mapping values are not allowed in this context": (
        "YAML 无效：此处不能有映射值（请检查缩进和冒号）"
    ),
    "not valid YAML: block sequence entries are not allowed in this context": (
        "YAML 无效：此处不能有列表项"
    ),
    "not valid YAML: did not find expected <document start>": "YAML 无效：此处应为新文档的开始",
    "not valid YAML: while parsing a block mapping, did not find expected key": (
        "YAML 无效：此处应为字段名（请检查缩进）"
    ),
    "not valid YAML: while parsing a block collection, did not find expected '-' indicator": (
        "YAML 无效：此处应为“-”（请检查缩进）"
    ),
    "not valid YAML: while parsing a flow sequence, did not find expected ',' or ']'": (
        "YAML 无效：缺少“,”或“]”"
    ),
    "not valid YAML: while scanning a simple key, could not find expected ':'": (
        "YAML 无效：字段名之后缺少“:”"
    ),
    "not valid YAML: while scanning a quoted scalar, found unexpected end of stream": (
        "YAML 无效：引号没有结束"
    ),
    "not valid YAML: while scanning for the next token, found character that cannot "
    "start any token": ("YAML 无效：此处不能以该字符开头"),
    "not valid YAML: indented by a tab; wanted spaces": "YAML 无效：缩进使用了制表符，请改用空格",
    "not valid YAML: an alias (*) without the anchor (&) that it names": (
        "YAML 无效：别名（*）没有对应的锚点（&）"
    ),
    "given twice, first in line {number}; keep one of them": (
        "字段重复，首次出现在第 {number} 行；请保留一个"
    ),
    "nested deeper than {number} levels": "嵌套超过 {number} 层",
    "wanted at most {number} values, found more; an alias (*) counts as all that it stands for": (
        "最多 {number} 个值；别名（*）按其全部内容计算"
    ),
    "wanted text as the name of a field, found a list or a map": "字段名应为文本，不能是列表或映射",
    "wanted a map after <<, found none": "<< 之后应为映射",
}
