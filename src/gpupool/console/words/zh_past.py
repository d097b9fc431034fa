"""Chinese: charts of the past."""

WORDS = {
    "History": "历史",
    "1 hour": "1 小时",
    "6 hours": "6 小时",
    "1 day": "1 天",
    "7 days": "7 天",
    "30 days": "30 天",
    "Time": "时间",
    "as a table": "以表格显示",
    "Nothing is known of this time.": "这段时间没有数据。",
    "Peak: {peak} MiB on one card.": "峰值：单卡 {peak} MiB。",
    "There is no history to show: {why}.": "没有可显示的历史：{why}。",
    "this console was started without one": "此控制台启动时未指定历史",
    "the collector did not answer in time": "采集器没有及时应答",
}
