"""Chinese: services."""

WORDS = {
    "Services": "服务",
    "Services: {all}; with an external endpoint: {reached}.": (
        "{all} 个服务，其中 {reached} 个有外部端点。"
    ),
    "Type": "类型",
    "Cluster IP": "集群 IP",
    "Internal endpoint": "内部端点",
    "External endpoint": "外部端点",
    "Its addresses stop answering. The pods behind it stay.": (
        "它的地址将不再应答，后端容器组不受影响。"
    ),
    "Its external endpoint is {link}.": "外部端点：{link}。",
    "It has no external endpoint yet. Its events may say why.": "还没有外部端点，原因可能见事件。",
    "It is reached inside of the cluster.": "只能在集群内部访问。",
    "Pods behind it": "后端容器组",
    "It selects no pods.": "没有选择容器组。",
    "Create service": "创建服务",
    "LoadBalancer: reached from outside of the cluster": "LoadBalancer：可从集群外部访问",
    "NodePort: reached on a port of every node": "NodePort：通过每个节点的端口访问",
    "ClusterIP: reached inside of the cluster": "ClusterIP：在集群内部访问",
    "Pods of": "后端工作负载",
    "by the labels below": "使用下面的标签",
    "If you chose a workload, it is that of the workload.": (
        "如果选择了工作负载，则为其所在的命名空间。"
    ),
    "Labels of the pods": "容器组的标签",
    "Ports": "端口",
    "One per line: 80; 80:8888 if pods listen on 8888; 53/UDP; 80 http to name it http": (
        "每行一个：80；容器监听 8888 时写 80:8888；53/UDP；80 http（名称为 http）"
    ),
    "Port {port} is there twice.": "端口 {port} 重复。",
    "Choose a workload, or name labels of pods.": "请选择工作负载，或填写容器组的标签。",
    "Service {name} is created.": "服务 {name} 已创建。",
    "Change": "更新",
    "Change service {name}": "更新服务 {name}",
    "Service {name} is changed.": "服务 {name} 已更新。",
    "by its node port": "通过节点端口",
    "It waits for a load balancer. Until then it is reached by its node port: {link}": (
        "正在等待负载均衡。在此之前可通过节点端口访问：{link}"
    ),
}
