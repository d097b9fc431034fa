// The screen of a terminal: what programs write, with the escape sequences of a VT100 that shells,
// nvidia-smi, top and less use. Every character is one column wide.
import { SEQUENCE } from "./ansi.js";

const MOST_LINES = 2000; // above the screen
const PLAIN = "";

export class Screen {
  constructor(columns, rows) {
    this.columns = columns;
    this.rows = rows;
    this.lines = []; // each an array of [character, style]; the last `rows` of them are the screen
    this.dropped = 0; // lines that are gone from the top
    this.row = 0;
    this.column = 0;
    this.style = PLAIN;
    this.keysAreApplication = false;
    this.saved = [0, 0];
    this.rest = ""; // the beginning of a sequence whose end has not come yet
    this.scroll = [0, rows - 1];
    for (let i = 0; i < rows; i++) this.lines.push([]);
  }

  get top() { return this.lines.length - this.rows; }
  get line() { return this.lines[this.top + this.row]; }

  resize(columns, rows) {
    while (this.rows < rows) {
      if (this.top > 0) this.row++;
      else this.lines.push([]);
      this.rows++;
    }
    while (this.rows > rows) {
      if (this.row === this.rows - 1) this.row--;
      else this.lines.pop();
      this.rows--;
    }
    this.columns = columns;
    this.column = Math.min(this.column, columns - 1);
    this.scroll = [0, rows - 1];
  }

  write(text) {
    const all = this.rest + text;
    this.rest = "";
    for (let i = 0; i < all.length; ) {
      const character = all[i];
      if (character === "\x1b") {
        SEQUENCE.lastIndex = i;
        const found = SEQUENCE.exec(all);
        if (found) {
          this.#sequence(found);
          i += found[0].length;
          continue;
        }
        // Not complete, or none that we know: a long one is not waited for.
        if (all.length - i < 300) {
          this.rest = all.slice(i);
          return;
        }
      } else if (character === "\n") this.#newLine();
      else if (character === "\r") this.column = 0;
      else if (character === "\b") this.column = Math.max(0, this.column - 1);
      else if (character === "\t") this.column = Math.min(this.columns - 1, (this.column | 7) + 1);
      else if (character >= " " && character !== "\x7f") {
        const whole = String.fromCodePoint(all.codePointAt(i));
        this.#put(whole);
        i += whole.length;
        continue;
      }
      i++;
    }
  }

  #put(character) {
    if (this.column >= this.columns) {
      this.column = 0;
      this.#newLine();
    }
    const line = this.line;
    while (line.length < this.column) line.push([" ", PLAIN]);
    line[this.column++] = [character, this.style];
  }

  #newLine() {
    const [first, last] = this.scroll;
    if (this.row < last || this.row >= this.rows) {
      this.row = Math.min(this.row + 1, this.rows - 1);
    } else if (this.row > last) {
      this.row = Math.min(this.row + 1, this.rows - 1);
    } else if (first === 0 && last === this.rows - 1) {
      this.lines.push([]);
      if (this.lines.length > MOST_LINES + this.rows) {
        this.lines.shift();
        this.dropped++;
      }
    } else this.#scrollBy(1);
  }

  #scrollBy(count) {
    const [first, last] = this.scroll;
    this.#move(first, last, count);
  }

  // Takes `count` lines out at `first`, and puts empty ones in at `last`; negative: the other way.
  #move(first, last, count) {
    const times = Math.min(Math.abs(count), last - first + 1);
    for (let i = 0; i < times; i++) {
      this.lines.splice(this.top + (count > 0 ? first : last), 1);
      // One line is missing now, so `top` is one less.
      this.lines.splice(this.lines.length + 1 - this.rows + (count > 0 ? last : first), 0, []);
    }
  }

  #sequence([, parameters, , letter, , middle, simple]) {
    if (letter !== undefined) return this.#control(parameters, letter);
    if (simple === undefined || middle) return;
    if (simple === "7") this.saved = [this.row, this.column];
    if (simple === "8") [this.row, this.column] = this.saved;
    if (simple === "M") this.row === this.scroll[0] ? this.#scrollBy(-1) : (this.row = Math.max(0, this.row - 1));
    if (simple === "D") this.#newLine();
    if (simple === "c") this.#clear(2);
  }

  #control(parameters, letter) {
    const isPrivate = parameters.startsWith("?");
    const numbers = parameters.replace(/^[?>=]/, "").split(";").map((each) => parseInt(each, 10) || 0);
    const count = Math.min(Math.max(1, numbers[0]), 1000);
    const line = this.line;
    if (letter === "A") this.row = Math.max(0, this.row - count);
    else if (letter === "B") this.row = Math.min(this.rows - 1, this.row + count);
    else if (letter === "C") this.column = Math.min(this.columns - 1, this.column + count);
    else if (letter === "D") this.column = Math.max(0, this.column - count);
    else if (letter === "G") this.column = Math.min(this.columns, count) - 1;
    else if (letter === "d") this.row = Math.min(this.rows, count) - 1;
    else if (letter === "H" || letter === "f") {
      this.row = Math.min(this.rows, count) - 1;
      this.column = Math.min(this.columns, Math.max(1, numbers[1] ?? 1)) - 1;
    } else if (letter === "J") this.#clear(numbers[0]);
    else if (letter === "K") this.#clearLine(numbers[0]);
    else if (letter === "P") line.splice(this.column, count);
    else if (letter === "@") {
      while (line.length < this.column) line.push([" ", PLAIN]);
      line.splice(this.column, 0, ...Array.from({ length: Math.min(count, this.columns) }, () => [" ", PLAIN]));
      line.length = Math.min(line.length, this.columns);
    } else if (letter === "X") {
      for (let i = this.column; i < Math.min(line.length, this.column + count); i++) line[i] = [" ", PLAIN];
    } else if (letter === "L") this.#move(this.row, this.scroll[1], -count);
    else if (letter === "M") this.#move(this.row, this.scroll[1], count);
    else if (letter === "S") this.#scrollBy(count);
    else if (letter === "T") this.#scrollBy(-count);
    else if (letter === "r" && !isPrivate) {
      const first = Math.max(1, numbers[0]) - 1;
      const last = Math.min(this.rows, numbers[1] || this.rows) - 1;
      if (first < last) this.scroll = [first, last];
      [this.row, this.column] = [0, 0];
    } else if (letter === "m") this.style = styled(this.style, numbers);
    else if (letter === "s") this.saved = [this.row, this.column];
    else if (letter === "u") [this.row, this.column] = this.saved;
    else if ((letter === "h" || letter === "l") && isPrivate) this.#mode(numbers, letter === "h");
    this.row = Math.min(this.row, this.rows - 1);
  }

  #mode(numbers, isOn) {
    if (numbers.includes(1)) this.keysAreApplication = isOn;
    // Programs with a whole screen of their own: it is cleared before and after.
    if (numbers.includes(1049) || numbers.includes(47)) this.#clear(2);
  }

  #clear(what) {
    if (what === 0) {
      this.#clearLine(0);
      for (let i = this.row + 1; i < this.rows; i++) this.lines[this.top + i] = [];
    } else if (what === 1) {
      this.#clearLine(1);
      for (let i = 0; i < this.row; i++) this.lines[this.top + i] = [];
    } else {
      for (let i = 0; i < this.rows; i++) this.lines[this.top + i] = [];
      [this.row, this.column, this.scroll] = [0, 0, [0, this.rows - 1]];
    }
  }

  #clearLine(what) {
    const line = this.line;
    if (what === 0) line.length = Math.min(line.length, this.column);
    else if (what === 2) line.length = 0;
    else for (let i = 0; i <= Math.min(this.column, line.length - 1); i++) line[i] = [" ", PLAIN];
  }
}

// A style is names of classes: "bold f1 b4". Only the sixteen colours of a terminal have one.
function styled(style, numbers) {
  let names = new Set(style.split(" ").filter(Boolean));
  const drop = (letter) => (names = new Set([...names].filter((each) => !RegExp(`^${letter}\\d`).test(each))));
  for (let i = 0; i < numbers.length; i++) {
    const n = numbers[i];
    if (n === 0) names.clear();
    else if (n === 1) names.add("bold");
    else if (n === 4) names.add("under");
    else if (n === 7) names.add("inverse");
    else if (n === 22) names.delete("bold");
    else if (n === 24) names.delete("under");
    else if (n === 27) names.delete("inverse");
    else if (n === 38 || n === 48) i += numbers[i + 1] === 5 ? 2 : 4; // 256 colours: left out
    else if (n >= 30 && n <= 39) drop("f"), n < 38 && names.add(`f${n - 30}`);
    else if (n >= 40 && n <= 49) drop("b"), n < 48 && names.add(`b${n - 40}`);
    else if (n >= 90 && n <= 97) drop("f"), names.add(`f${n - 90}`);
    else if (n >= 100 && n <= 107) drop("b"), names.add(`b${n - 100}`);
  }
  return [...names].join(" ");
}
