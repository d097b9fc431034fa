// The log of a container: reads it as it comes, and keeps a bounded part of it.
import { plain } from "./ansi.js";

const MOST_LINES = 5000;
const MOST_CHARACTERS = 8000; // of a line; a program may never end one

function followLog() {
  const box = document.getElementById("log");
  if (!box) return;
  const state = document.getElementById("log-state");
  const filter = document.getElementById("log-filter");
  const stays = document.getElementById("log-follow");
  let waiting = []; // lines that are not drawn yet
  let isAsked = false;
  let isCut = false;

  const say = (key) => (state.textContent = [state.dataset[key], isCut ? state.dataset.cut : ""].join(" ").trim());
  const fits = (text) => text.toLowerCase().includes(filter.value.toLowerCase());

  const draw = () => {
    isAsked = false;
    const fresh = document.createDocumentFragment();
    for (const text of waiting) {
      const line = document.createElement("div");
      line.textContent = text || " "; // never as markup
      line.hidden = !fits(text);
      fresh.append(line);
    }
    waiting = [];
    box.append(fresh);
    while (box.childElementCount > MOST_LINES) box.firstElementChild.remove();
    if (stays.checked) box.scrollTop = box.scrollHeight;
  };
  const add = (text) => {
    waiting.push(plain(text));
    if (waiting.length > MOST_LINES) waiting.shift();
    if (box.childElementCount + waiting.length > MOST_LINES) isCut = true;
    if (!isAsked) requestAnimationFrame(draw);
    isAsked = true;
  };

  filter.addEventListener("input", () => {
    for (const line of box.children) line.hidden = !fits(line.textContent);
    if (stays.checked) box.scrollTop = box.scrollHeight;
  });
  stays.addEventListener("change", draw);
  // Whoever scrolls up reads: the lines must not run away. At the end it follows again.
  box.addEventListener("scroll", () => {
    stays.checked = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  });

  const leaving = new AbortController();
  addEventListener("pagehide", () => leaving.abort());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  say("begins");
  read(box.dataset.source, leaving.signal, add, say).then(
    (words) => (words ? (state.textContent = words) : say("over")),
    () => say("lost"),
  );
}

// The API server's words, if it refused; empty at the end of the log.
async function read(source, signal, add, say) {
  const answer = await fetch(source, { credentials: "same-origin", signal });
  if (answer.redirected) return location.reload();
  if (!answer.ok) {
    const isText = answer.headers.get("content-type")?.startsWith("text/plain");
    return isText ? (await answer.text()).slice(0, 2000) : `HTTP ${answer.status}`;
  }
  say(source.includes("follow=1") ? "follows" : "begins");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    while (rest.length > MOST_CHARACTERS) {
      lines.push(rest.slice(0, MOST_CHARACTERS));
      rest = rest.slice(MOST_CHARACTERS);
    }
    for (const line of lines) add(line.slice(0, MOST_CHARACTERS));
  }
  if (rest) add(rest);
  return "";
}

followLog();
