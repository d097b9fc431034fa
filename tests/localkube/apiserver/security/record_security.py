"""Records fixtures/answers.json: what a real kube-apiserver answers to security_cases.

    python -m tests.localkube.apiserver.security.record_security

Most is asked by an administrator who impersonates the user of the case.
"""

import base64
import http.client
import json
import ssl
import tempfile
import time
import urllib.parse
from pathlib import Path

from testbed.controlplane import ControlPlane
from tests.localkube.apiserver.security import security_cases as cases
from tests.localkube.apiserver.security.security_cases import RBAC, Headers, Json

FIXTURE = Path(__file__).parent / "fixtures" / "answers.json"
METHODS = {"create": "POST", "delete": "DELETE", "deletecollection": "DELETE", "post": "POST"}
REVIEW_GROUPS = {
    "SelfSubjectReview": "authentication.k8s.io",
    "TokenReview": "authentication.k8s.io",
}


class Server:
    def __init__(self, plane: ControlPlane) -> None:
        self._at = urllib.parse.urlsplit(plane.url)
        self._trust = ssl.create_default_context(cafile=str(plane.ca_file))
        self._admin = plane.token

    def send(
        self, method: str, path: str, body: Json = None, headers: Headers = (), token: str = ""
    ) -> tuple[int, Json]:
        host, port = self._at.hostname or "", self._at.port
        connection = http.client.HTTPSConnection(host, port, timeout=30, context=self._trust)
        data = b"" if body is None else json.dumps(body).encode()
        connection.putrequest(method, urllib.parse.quote(path, safe="/?=&%"))
        sent = [("Authorization", f"Bearer {token or self._admin}"), *headers]
        if body is not None:
            sent += [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
        for name, value in sent:
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        streams = "watch=1" in path and answer.status == 200
        raw = b"" if streams else answer.read()
        connection.close()
        return answer.status, json.loads(raw) if is_json and raw else raw.decode()

    def create(self, path: str, body: Json) -> Json:
        status, made = self.send("POST", path, body)
        assert status == 201, made
        return made


def _as(user: str, groups: str) -> Headers:
    named = [("Impersonate-User", user)] if user else []
    return [*named, *(("Impersonate-Group", group) for group in groups.split())]


def _path(group: str, plural: str, namespace: str) -> str:
    root = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def _place(body: Json) -> str:
    group = RBAC if body["apiVersion"] != "v1" else ""
    namespace = body["metadata"].get("namespace", "")
    return _path(group, body["kind"].lower() + "s", namespace)


def _object(kind: str, name: str, **more: Json) -> Json:
    space = {} if kind == "Node" else {"namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **space}, **more}


def _pod(name: str, node: str, account: str) -> Json:
    sources = [{"secretRef": {"name": "used"}}, {"configMapRef": {"name": "used"}}]
    container = {"name": "c", "image": "i", "envFrom": sources if node == "n1" else []}
    spec = {"serviceAccountName": account, "nodeName": node, "containers": [container]}
    return _object("Pod", name, spec=spec)


def _prepare(server: Server) -> Json:
    wanted = [_object("ServiceAccount", name) for name in ("robot", "editor", "other")]
    wanted += [_object("Node", name) for name in ("n1", "n2")]
    wanted += [_object("Secret", name) for name in ("used", "unused", "doomed")]
    wanted += [_object("ConfigMap", name) for name in ("used", "unused")]
    wanted += [_pod("p1", "n1", "robot"), _pod("p2", "n2", "other")]
    found = [server.create(_place(body), body) for body in wanted]
    for body in cases.OBJECTS:
        server.create(_place(body), body)
    for each in found:
        each["metadata"].pop("managedFields", None)
    return found


def _request_path(asked: dict[str, str]) -> str:
    if "path" in asked:
        return asked["path"]
    name, verb = asked.get("name", ""), asked["verb"]
    if asked["resource"] == "namespaces":
        path = _path("", "namespaces", "")
    else:
        path = _path(asked["group"], asked["resource"], asked.get("namespace", ""))
    if name and verb not in ("list", "watch"):
        path += f"/{name}"
    if asked["subresource"]:
        path += f"/{asked['subresource']}"
    if selector := asked.get("field_selector", ""):
        path += f"?fieldSelector={selector.replace('=', '%3D')}"
    return path + ("?watch=1" if verb == "watch" else "")


def _requests(server: Server) -> list[Json]:
    answers = []
    for case in cases.REQUESTS:
        asked = cases.access(case)
        method = METHODS.get(asked["verb"], "GET")
        body: Json = {} if method == "POST" else None
        status, answer = server.send(method, _request_path(asked), body, _as(case[0], case[1]))
        answers.append({"status": status, "answer": answer if status == 403 else None})
    return answers


def _reviews(server: Server) -> list[Json]:
    account = _path("", "serviceaccounts", "default") + "/robot/token"
    tokens = {
        name: server.create(account, {"spec": spec})["status"]["token"]
        for name, spec in cases.TOKENS.items()
    }
    tokens["$mangled"] = tokens["$robot"][:-8] + "AAAAAAAA"
    server.send("DELETE", _path("", "secrets", "default") + "/doomed")
    answers = []
    for user, groups, kind, namespace, body in cases.REVIEWS:
        sent = json.loads(json.dumps(body))
        name = sent.get("spec", {}).get("token")
        if name in tokens:
            sent["spec"]["token"] = tokens[name]
        group = REVIEW_GROUPS.get(kind, "authorization.k8s.io")
        path = _path(group, f"{kind.lower()}s", namespace)
        status, answer = server.send("POST", path, sent, _as(user, groups))
        if name in tokens and status == 201:
            answer["spec"]["token"] = name
        answer.get("metadata", {}).pop("managedFields", None)
        answers.append({"status": status, "answer": answer})
    return answers


def _grants(server: Server) -> list[Json]:
    answers = []
    for user, body in cases.GRANTS:
        status, answer = server.send("POST", _place(body), body, _as(user, ""))
        answers.append({"status": status, "answer": None if status == 201 else answer})
    return answers


def _impersonations(server: Server, ivy: str) -> list[Json]:
    answers = []
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = _path("authentication.k8s.io", "selfsubjectreviews", "")
    for user, headers in cases.IMPERSONATIONS:
        status, answer = server.send("POST", path, body, headers, ivy if user else "")
        answers.append({"status": status, "answer": answer})
    return answers


def _decoded(token: str) -> Json:
    parts = [part + "=" * (-len(part) % 4) for part in token.split(".")[:2]]
    return [json.loads(base64.urlsafe_b64decode(part)) for part in parts]


def _token_requests(server: Server) -> list[Json]:
    answers = []
    for account, body in cases.TOKEN_REQUESTS:
        path = _path("", "serviceaccounts", "default") + f"/{account}/token"
        status, answer = server.send("POST", path, body)
        recorded = {"status": status, "answer": answer}
        if status == 201:
            answer["metadata"].pop("managedFields", None)
            recorded["token"] = _decoded(answer["status"].pop("token"))
        answers.append(recorded)
    return answers


def _bootstrap(server: Server) -> Json:
    chosen = "?labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults"
    plurals = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    found = {}
    for plural in plurals:
        items = server.send("GET", _path(RBAC, plural, "") + chosen)[1]["items"]
        found[plural] = [i for i in items if ":controller:" not in i["metadata"]["name"]]
        for item in found[plural]:
            for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                item["metadata"].pop(key, None)
    return found


def _by_line(recorded: Json) -> str:
    """An answer per line, so that a new recording shows what changed."""
    return (
        json.dumps(recorded, indent=None, sort_keys=True)
        .replace('{"answer"', '\n{"answer"')
        .replace('{"aggregationRule"', '\n{"aggregationRule"')
        .replace('{"metadata": {"annot', '\n{"metadata": {"annot')
        + "\n"
    )


def main() -> None:
    flags: dict[str, list[str]] = {"kube-apiserver": []}
    plane = ControlPlane(controllers=True, flags=flags)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as users:
        # ivy has a token: somebody who is impersonated cannot impersonate in turn.
        users.write(f'{plane.token},admin,admin,"system:masters"\nivy-token,ivy,ivy\n')
        users.flush()
        flags["kube-apiserver"].append(f"--token-auth-file={users.name}")
        with plane:
            server = Server(plane)
            recorded = {"found": _prepare(server)}
            # The authorizer and the controller of aggregated roles learn from watches.
            time.sleep(5)
            recorded["bootstrap"] = _bootstrap(server)
            recorded["requests"] = _requests(server)
            recorded["reviews"] = _reviews(server)
            recorded["impersonations"] = _impersonations(server, "ivy-token")
            recorded["token_requests"] = _token_requests(server)
            recorded["grants"] = _grants(server)
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(_by_line(recorded))


if __name__ == "__main__":
    main()
