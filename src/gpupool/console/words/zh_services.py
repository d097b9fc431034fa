"""Chinese: services."""

WORDS = {
    "Services": "服务",
    "{all} services, {reached} of them with an external endpoint.": (
        "{all} 个服务，其中 {reached} 个有外部端点。"
    ),
    "Type": "类型",
    "Cluster IP": "集群 IP",
    "Internal endpoint": "内部端点",
    "External endpoint": "外部端点",
    "There are no services here.": "这里没有服务。",
    "Delete service {name}": "删除服务 {name}",
    "Its addresses stop answering. The pods behind it stay.": (
        "它的地址将不再应答，后端容器组不受影响。"
    ),
    "Service {name} is deleted.": "服务 {name} 已删除。",
}
