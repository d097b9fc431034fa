"""Workloads in the console, as people click through them, in both languages."""

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
WORDS = {
    "en": {
        "cron": "CronJobs",
        "run": "Run now",
        "suspend": "Suspend",
        "resume": "Resume",
        "delete": "Delete",
        "daemon": "DaemonSets",
    },
    "zh-CN": {
        "cron": "定时任务",
        "run": "立即运行",
        "suspend": "挂起",
        "resume": "恢复",
        "delete": "删除",
        "daemon": "守护进程集",
    },
}


@pytest.mark.parametrize("language", WORDS)
async def test_a_cron_job_is_run_suspended_resumed_and_deleted(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    words = WORDS[language]
    once = {"containers": [shell("true")], "restartPolicy": "Never"}
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": {"template": {"spec": once}}}}
    made = {"metadata": {"name": "nightly"}, "spec": spec}
    assert call(cluster, "POST", f"{BATCH}/cronjobs", made)[0] == 201
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(words["cron"], "nav.side")
        await visitor.clicks("nightly", "#table")
        for button, key in (("suspend", True), ("resume", False)):
            await visitor.clicks(words[button], ".heading")
            await page.until("document.querySelector('#dialogue').open")
            await visitor.clicks(words[button], "#dialogue")
            await page.until("!document.querySelector('#dialogue').open")
            spec = call(cluster, "GET", f"{BATCH}/cronjobs/nightly")[1]["spec"]
            assert spec["suspend"] is key
        await visitor.clicks(words["run"], ".heading")
        await visitor.clicks(words["run"], "#dialogue")
        await page.until("location.pathname.includes('/jobs/default/nightly-')")
        job = str(await page.run("location.pathname")).rpartition("/")[2]
        assert call(cluster, "GET", f"{BATCH}/jobs/{job}")[0] == 200
        await visitor.goes_to("/cronjobs/default/nightly")
        await page.until(f"document.querySelector('#section-jobs').innerText.includes('{job}')")
        await visitor.clicks(words["delete"], ".heading")
        await page.until("document.activeElement?.id === 'field-typed-name'")
        await page.type("nightly")
        await page.press_enter()
        # The page of what is gone would be empty: the list is shown.
        await page.until("location.pathname.endsWith('/cronjobs')")
    gone = f"{BATCH}/jobs/{job}"
    eventually(lambda: call(cluster, "GET", gone)[0] == 404, within_s=120)


async def test_a_new_pod_of_a_daemon_set_appears_on_its_page(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    spec = {"template": template(shell("sleep 9999"))}
    made = workload("DaemonSet", "every-node", None, **spec)
    assert call(cluster, "POST", f"{APPS}/daemonsets", made)[0] == 201
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/daemonsets/default/every-node")
        await visitor.page.shows("2 of 2 pods are ready.")
        pods = "/api/v1/namespaces/default/pods"
        first = call(cluster, "GET", pods)[1]["items"][0]["metadata"]["name"]
        await visitor.page.shows(first)
        assert call(cluster, "DELETE", f"{pods}/{first}")[0] == 200
        listed = "document.querySelector('#section-pods').innerText"
        await visitor.page.until(f"!{listed}.includes({first!r})")
        await visitor.page.shows("2 of 2 pods are ready.")
    assert call(cluster, "DELETE", f"{APPS}/daemonsets/every-node")[0] == 200


@pytest.mark.parametrize(("language", "back"), [("en", "Back to this"), ("zh-CN", "回滚到此版本")])
async def test_a_deployment_goes_back_to_its_first_revision(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str, back: str
) -> None:
    path = f"{APPS}/deployments/rolled"
    made = workload("Deployment", "rolled", 0, template=template(shell("sleep 1000")))
    assert call(cluster, "POST", f"{APPS}/deployments", made)[0] == 201
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/deployments/default/rolled")
        await page.until("document.querySelectorAll('#history tbody tr').length === 1")
        newer = template(shell("sleep 2000"))
        eventually(
            lambda: (
                call(
                    cluster,
                    "PUT",
                    path,
                    (found := call(cluster, "GET", path)[1])
                    | {"spec": found["spec"] | {"template": newer}},
                )[0]
                == 200
            ),
            within_s=60,
        )
        await visitor.clicks(back, "#history")
        await page.until("document.querySelector('#dialogue .added')?.innerText.includes('1000')")
        await page.click("#dialogue button.primary")
        await page.until("!document.querySelector('#dialogue').open")
        await page.until("document.querySelector('#history').innerText.includes('3')")
    command = call(cluster, "GET", path)[1]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[-1] == "sleep 1000"
    assert call(cluster, "DELETE", path)[0] == 200
    eventually(lambda: call(cluster, "GET", path)[0] == 404, within_s=60)
