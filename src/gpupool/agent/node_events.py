"""NodeEvents: what the agent reports about its node, as events and in its log."""

import logging

from gpupool.agent.news import News
from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.objects import Obj

log = logging.getLogger(__name__)


class NodeEvents:
    def __init__(self, node: str, recorder: Recorder) -> None:
        self._node = node
        self._recorder = recorder
        self._said: set[News] = set()

    def say(self, node: Obj, news: News) -> None:
        log.log(
            logging.WARNING if news.is_bad else logging.INFO,
            "event of the node",
            extra={"node": self._node, "reason": news.reason, "text": news.message},
        )
        kind = WARNING if news.is_bad else NORMAL
        self._recorder.event(node, kind, news.reason, news.message, host=self._node)

    def say_once(self, node: Obj, news: News) -> None:
        """For conditions that last."""
        if news not in self._said:
            self._said.add(news)
            self.say(node, news)
