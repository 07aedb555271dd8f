// The selected kernel's text at all levels side by side, and which line became which.

/** The levels that are shown first where there is no room for all. */
const FIRST = [
  "tile",
  "source",
  "cuda",
  "asm",
  "llvm",
  "loop",
  "kernel",
  "sass",
  "torch",
  "tensor",
];
const WIDTH = 400; // pixels that a column should have

/** Shows a line of a level among the texts, pins it and gives it the focus. */
let goToLine = () => {};

function drawTexts(parent) {
  const room = Math.max(2, Math.floor(document.documentElement.clientWidth / WIDTH));
  const ranked = FIRST.map(levelNamed).filter((level) => level >= 0 && levels[level].lines.length);
  const others = levels
    .map((_, level) => level)
    .filter((level) => !ranked.includes(level) && levels[level].lines.length);
  const chosen = new Set([...ranked, ...others].slice(0, room));
  const frame = el("div", { class: "columns" });
  const columns = levels.map((_, level) =>
    makeColumn(level, (key, column) => toTheSide(columns, key, column)),
  );
  const boxes = levels.map((level, index) =>
    el(
      "label",
      {},
      el("input", {
        type: "checkbox",
        checked: chosen.has(index),
        disabled: !level.lines.length,
        change: (event) => {
          columns[index].element.hidden = !event.target.checked;
          if (event.target.checked) fillColumn(columns[index], linesOf(state.kernel)[index]);
          setHeight(frame, columns);
          remark(columns, true);
        },
      }),
      level.title,
    ),
  );
  columns.forEach((column, level) => {
    column.element.hidden = !chosen.has(level);
    frame.append(column.element);
  });
  const pin = el("button", { type: "button", class: "unpin", hidden: true, click: unpin }, "Unpin");
  parent.append(
    section(
      "texts",
      3,
      "At all levels",
      el("fieldset", { class: "choices" }, el("legend", {}, "Levels"), boxes, pin),
      el(
        "p",
        { class: "hint", id: "texts-keys" },
        "Point at a line, or move with arrow keys, to mark what it came from and what it became. " +
          "Click or Enter pins it; Escape lets go.",
      ),
      frame,
    ),
  );
  on("kernel", () => {
    const own = linesOf(state.kernel);
    columns.forEach((column, level) => {
      if (!column.element.hidden) fillColumn(column, own[level]);
    });
    setHeight(frame, columns);
  });
  goToLine = (level, line) => {
    const box = boxes[level].querySelector("input");
    if (!box.checked) box.click();
    state.pinned = false;
    document.getElementById("texts").scrollIntoView({ block: "start" });
    columns[level].go(line);
    markLine({ level, line }, true);
  };
  on("mark", () => {
    pin.hidden = !state.pinned;
    remark(columns, state.pinned);
  });
}

function fillColumn(column, own) {
  column.fill(shownLines(column.level, own), own);
}

/** All columns are as high as the longest needs, or as the page lets them be. */
function setHeight(frame, columns) {
  const most = Math.max(
    0,
    ...columns.filter((column) => !column.element.hidden).map((column) => column.shown.length),
  );
  frame.style.setProperty("--lines", most);
}

/** Gives each column its marks. With `seek`, the columns other than the marked line's scroll to them. */
function remark(columns, seek) {
  const { mark, pinned } = state;
  const sets = mark ? related(mark.level, mark.line) : null;
  for (const column of columns) {
    if (column.element.hidden) continue;
    const here = mark && mark.level === column.level;
    column.mark(
      sets ? sets[column.level] : new Set(),
      here ? mark.line : null,
      pinned,
      seek && !here,
    );
  }
}

/** To the next column that is shown, at the first line that is marked in it. */
function toTheSide(columns, key, column) {
  const shown = columns.filter((each) => !each.element.hidden && each.shown.length);
  const next = shown[shown.indexOf(column) + (key === "ArrowRight" ? 1 : -1)];
  if (!next) return;
  const first = next.shown.find((line) => next.marks.has(line));
  next.element.scrollIntoView({ block: "nearest", inline: "nearest" });
  next.go(first === undefined ? next.shown[next.current] : first);
}

/** A button that goes to a line of a stage in the texts and pins it; only the text of what has no line. */
function lineButton(stage, line, ...text) {
  const level = levelNamed(stage);
  if (line === null || line === undefined || level < 0) return el("span", {}, text);
  return el(
    "button",
    { type: "button", class: "to-line", click: () => goToLine(level, line) },
    text,
  );
}
