// A terminal: keys go to a shell in a container, and what it writes is drawn.
import { Screen } from "./screen.js";

const KEYS = {
  Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Delete: "\x1b[3~", Insert: "\x1b[2~",
  PageUp: "\x1b[5~", PageDown: "\x1b[6~",
};
const CURSOR = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };

function openTerminal() {
  const box = document.getElementById("terminal");
  if (!box) return;
  const state = document.getElementById("terminal-state");
  const again = document.getElementById("terminal-again");
  const typed = box.querySelector(".typed");
  const view = box.querySelector(".screen");
  const screen = new Screen(80, 24);
  const drawn = drawer(screen, view, box);
  const bytes = new TextEncoder();
  let socket = null;

  const send = (text) => socket?.readyState === WebSocket.OPEN && socket.send(bytes.encode(text));
  const fit = () => {
    const size = sizeOf(box, view);
    if (size.columns !== screen.columns || size.rows !== screen.rows) screen.resize(size.columns, size.rows);
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(size));
    drawn();
  };
  const connect = () => {
    const text = new TextDecoder();
    let words = "";
    let isEnded = false;
    again.hidden = true;
    state.textContent = state.dataset.begins;
    socket = new WebSocket(new URL(box.dataset.source, location.href.replace(/^http/, "ws")));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      state.textContent = state.dataset.open;
      fit();
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") {
        isEnded = true;
        words = JSON.parse(data).end;
      } else {
        screen.write(text.decode(data, { stream: true }));
        drawn();
      }
    };
    socket.onclose = () => {
      state.textContent = words || (isEnded ? state.dataset.over : state.dataset.lost);
      again.hidden = false;
    };
  };

  typed.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const text = keyText(event, screen.keysAreApplication);
    if (text === null) return;
    event.preventDefault();
    send(text);
  });
  // What is typed, pasted, or made by an input method.
  typed.addEventListener("input", (event) => {
    if (event.isComposing) return;
    send(typed.value.replace(/\r?\n/g, "\r"));
    typed.value = "";
  });
  typed.addEventListener("compositionend", () => {
    send(typed.value);
    typed.value = "";
  });
  box.addEventListener("mouseup", () => getSelection().isCollapsed && typed.focus({ preventScroll: true }));
  new ResizeObserver(fit).observe(box);
  addEventListener("pagehide", () => socket?.close());
  addEventListener("pageshow", (event) => event.persisted && connect());
  again.addEventListener("click", () => {
    connect();
    typed.focus();
  });
  connect();
  typed.focus({ preventScroll: true });
}

// null: the browser's own business.
function keyText(event, isApplication) {
  if (event.metaKey || (event.key === "Tab" && event.shiftKey)) return null;
  if (event.ctrlKey && !event.altKey && /^[a-z@[\]\\^_]$/i.test(event.key)) {
    const isCopy = event.key.toLowerCase() === "c" && (event.shiftKey || !getSelection().isCollapsed);
    if (isCopy || event.key.toLowerCase() === "v") return null;
    return String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
  }
  if (event.key in CURSOR) return `\x1b${isApplication ? "O" : "["}${CURSOR[event.key]}`;
  if (event.key in KEYS && !event.ctrlKey) return KEYS[event.key];
  return null;
}

function sizeOf(box, view) {
  const probe = document.createElement("span");
  probe.textContent = "m".repeat(10);
  view.append(probe);
  const { width } = probe.getBoundingClientRect();
  probe.remove();
  const style = getComputedStyle(box);
  const across = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const down = box.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
  return {
    columns: Math.min(500, Math.max(20, Math.floor(across / (width / 10)))),
    rows: Math.min(200, Math.max(5, Math.floor(down / parseFloat(style.lineHeight)))),
  };
}

// Draws at most once a frame, and only lines that are different.
function drawer(screen, view, box) {
  let isAsked = false;
  let shown = []; // what each line on the page was made of
  let dropped = 0;
  const draw = () => {
    isAsked = false;
    for (; dropped < screen.dropped; dropped++) {
      view.firstElementChild?.remove();
      shown.shift();
    }
    const cursor = screen.top + screen.row;
    while (view.childElementCount > screen.lines.length) view.lastElementChild.remove();
    shown.length = Math.min(shown.length, screen.lines.length);
    screen.lines.forEach((line, i) => {
      const at = i === cursor ? screen.column : -1;
      const key = JSON.stringify([line, at]);
      if (shown[i] === key) return;
      shown[i] = key;
      const drawn = drawLine(line, at);
      if (view.children[i]) view.children[i].replaceWith(drawn);
      else view.append(drawn);
    });
    box.scrollTop = box.scrollHeight;
  };
  return () => {
    if (!isAsked) requestAnimationFrame(draw);
    isAsked = true;
  };
}

function drawLine(line, cursor) {
  const drawn = document.createElement("div");
  const cells = [...line];
  while (cells.length <= cursor) cells.push([" ", ""]);
  let part = null;
  let last = null;
  cells.forEach(([character, style], i) => {
    const name = i === cursor ? `${style} cursor`.trim() : style;
    if (!part || name !== last) {
      part = document.createElement("span");
      part.className = name;
      drawn.append(part);
      last = name;
    }
    part.textContent += character;
  });
  if (!cells.length) drawn.textContent = " ";
  return drawn;
}

openTerminal();
