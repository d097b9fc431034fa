// A YAML editor: a text area with a coloured layer behind it, line numbers, and marks at lines that
// are wrong. The text area stays a text area: keyboard, screen readers and undo work as ever.

import { startChecks } from "./checks.js";
import { startSuggestions } from "./suggest.js";

function startEditors() {
  for (const editor of document.querySelectorAll("[data-editor]")) start(editor);
}

function start(editor) {
  const area = editor.querySelector("textarea");
  const layer = document.createElement("pre");
  layer.className = "editor-layer";
  layer.ariaHidden = "true";
  editor.prepend(layer);
  editor.classList.add("started");
  const wrong = new Set(numbers(editor.dataset.wrong)); // as the form said
  let found = []; // while somebody types

  const draw = () => {
    const texts = area.value.split("\n");
    // What is missing at the end is reported for the line after the last one.
    const marked = new Set([...wrong, ...found].map((number) => Math.min(number, texts.length)));
    const lines = texts.map((line, index) => lineOf(line, marked.has(index + 1)));
    layer.replaceChildren(...lines);
    layer.scrollTop = area.scrollTop;
    layer.scrollLeft = area.scrollLeft;
  };
  area.addEventListener("input", () => {
    wrong.clear(); // lines have moved
    found = [];
    draw();
  });
  area.addEventListener("marks", (event) => {
    wrong.clear();
    numbers(event.detail).forEach((number) => wrong.add(number));
    draw();
  });
  area.addEventListener("scroll", () => {
    layer.scrollTop = area.scrollTop;
    layer.scrollLeft = area.scrollLeft;
  });
  startSuggestions(editor, area); // before `indent`: an open list has its keys first
  area.addEventListener("keydown", indent);
  startChecks(editor, area, [...wrong], (lines) => {
    found = lines;
    draw();
  });
  draw();
  const first = Math.min(...wrong);
  if (Number.isFinite(first)) area.scrollTop = Math.max(0, (first - 4) * 20);
}

function numbers(text) {
  return (text || "").split(" ").filter(Boolean).map(Number);
}

// Tab indents by two spaces; Shift+Tab leaves the editor backwards, Escape and then Tab forwards.
let leaves = false;
function indent(event) {
  if (event.key === "Escape") leaves = true;
  if (event.key !== "Tab" || event.shiftKey || leaves) {
    if (event.key === "Tab") leaves = false;
    return;
  }
  event.preventDefault();
  document.execCommand("insertText", false, "  "); // the only way that undo understands
}

function lineOf(text, isWrong) {
  const line = document.createElement("span");
  line.className = isWrong ? "line wrong" : "line";
  const [, indentation, dash, key, rest] = /^(\s*)(- )?([\w./"'-]+(?=:(?:\s|$)))?(.*)$/.exec(text);
  line.append(indentation, dash ?? "");
  if (key) line.append(piece("key", key));
  const comment = /(^|\s)#.*$/.exec(rest);
  const value = comment ? rest.slice(0, comment.index) : rest;
  const isText = /^:?\s*(["'].*["'])\s*$/.test(value);
  const isNumber = /^:?\s*(-?\d[\d.]*|true|false|null)\s*$/.test(value);
  line.append(isText || isNumber ? piece(isText ? "text" : "number", value) : value);
  if (comment) line.append(piece("comment", comment[0]));
  line.append("\n");
  return line;
}

function piece(kind, text) {
  const made = document.createElement("span");
  made.className = `yaml-${kind}`;
  made.textContent = text;
  return made;
}

startEditors();
