// One column of code, of which only the lines in sight are elements: it may have many thousands.

const LINE = 18; // pixels; page.css says the same
const SPARE = 12; // lines beyond the edge that are drawn, too

/**
 * A column of a level: `element`, and how to change what it shows.
 *
 * `move(key, line)` is told of arrows to the sides, which lead to other columns.
 */
function makeColumn(level, move) {
  const { title, language } = levels[level];
  const id = fresh("column");
  const inside = el("div", { class: "inside" });
  const view = el(
    "div",
    {
      class: "lines",
      tabindex: 0,
      role: "listbox",
      "aria-label": `${title}, lines`,
      "aria-describedby": "texts-keys",
    },
    inside,
  );
  const strip = el("div", { class: "strip", "aria-hidden": "true" });
  const empty = none("The kernel has no lines here.");
  const name = el("h4", { id }, title);
  const element = el(
    "div",
    { class: "column", role: "group", "aria-labelledby": id, "data-level": level },
    name,
    el("div", { class: "frame" }, view, strip, empty),
  );
  const column = { level, element, view, shown: [], current: 0, own: new Set(), marks: new Set() };
  let drawn = new Map();
  let waiting = false;

  /** Shows these lines; those that are not the kernel's own are dimmed. */
  column.fill = (lines, own) => {
    column.own = own;
    column.shown = withGaps(level, lines);
    column.current = Math.max(
      0,
      column.shown.findIndex((line) => own.has(line)),
    );
    const longest = column.shown.reduce(
      (most, line) => Math.max(most, line < 0 ? 0 : levels[level].lines[line].length),
      0,
    );
    inside.style.height = `${column.shown.length * LINE}px`;
    inside.style.width = `${Math.min(longest, 2000) + 9}ch`;
    element.classList.toggle(
      "partial",
      lines.some((line) => own.has(line)) && lines.some((line) => !own.has(line)),
    );
    empty.hidden = column.shown.length > 0;
    redraw();
    view.scrollTop = Math.max(0, column.current - 2) * LINE;
    view.scrollLeft = 0;
  };

  /** Marks lines; `main` is the one that is pointed at, if it is here. With `seek`, scrolls to the first. */
  column.mark = (marks, main, pinned, seek) => {
    column.marks = marks;
    column.main = main;
    column.pinned = pinned;
    if (main !== null) column.current = Math.max(0, column.shown.indexOf(main));
    for (const [index, each] of drawn) dress(each, index);
    drawStrip(strip, column);
    if (!seek || !marks.size) return;
    const first = column.shown.findIndex((line) => marks.has(line));
    if (first < 0) return;
    const [top, bottom] = [view.scrollTop, view.scrollTop + view.clientHeight - LINE];
    const sees = column.shown.some(
      (line, index) => marks.has(line) && index * LINE >= top && index * LINE <= bottom,
    );
    if (!sees) view.scrollTop = Math.max(0, first - 3) * LINE;
  };

  function redraw() {
    inside.replaceChildren();
    drawn = new Map();
    draw();
  }

  function draw() {
    waiting = false;
    const first = Math.max(0, Math.floor(view.scrollTop / LINE) - SPARE);
    const end = Math.min(
      column.shown.length,
      Math.ceil((view.scrollTop + (view.clientHeight || 400)) / LINE) + SPARE,
    );
    for (const [index, each] of drawn) {
      if (index >= first && index < end) continue;
      each.remove();
      drawn.delete(index);
    }
    for (let index = first; index < end; index += 1) {
      if (drawn.has(index)) continue;
      const each = drawLine(level, column.shown[index], language, `${id}-${index}`);
      each.style.top = `${index * LINE}px`;
      dress(each, index);
      drawn.set(index, each);
      inside.append(each);
    }
    if (column.shown.length) view.setAttribute("aria-activedescendant", `${id}-${column.current}`);
  }

  function dress(each, index) {
    const line = column.shown[index];
    const set = (name, value) => each.classList.toggle(name, value);
    set("foreign", !column.own.has(line));
    set("mark", column.marks.has(line));
    set("main", column.main === line);
    set("pinned", Boolean(column.pinned) && column.main === line);
    set("current", column.current === index);
    each.setAttribute("aria-selected", column.marks.has(line));
  }

  /** Goes to the line at a position of the column, which marks it. */
  function go(index) {
    let to = Math.max(0, Math.min(column.shown.length - 1, index));
    if (column.shown[to] < 0) to += index > column.current ? 1 : -1;
    if (to < 0 || to >= column.shown.length) return;
    column.current = to;
    const top = to * LINE;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + LINE > view.scrollTop + view.clientHeight)
      view.scrollTop = top + LINE - view.clientHeight;
    draw();
    markLine({ level, line: column.shown[to] });
    for (const [at, each] of drawn) dress(each, at);
    view.setAttribute("aria-activedescendant", `${id}-${to}`);
  }

  column.go = (line) => {
    view.focus({ preventScroll: true });
    go(Math.max(0, column.shown.indexOf(line)));
  };

  view.addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  });
  new ResizeObserver(draw).observe(view);
  const lineOf = (event) => {
    const each = event.target.closest(".line");
    return each && each.dataset.line !== undefined ? Number(each.dataset.line) : null;
  };
  view.addEventListener("pointermove", (event) => {
    const line = lineOf(event);
    if (line !== null) markLine({ level, line });
  });
  view.addEventListener("pointerleave", () => markLine(null));
  view.addEventListener("click", (event) => {
    const line = lineOf(event);
    if (line !== null) markLine({ level, line }, true);
  });
  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.clientHeight / LINE) - 1);
    const to = {
      ArrowUp: column.current - 1,
      ArrowDown: column.current + 1,
      PageUp: column.current - page,
      PageDown: column.current + page,
      Home: 0,
      End: column.shown.length - 1,
    }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") move(event.key, column);
    else if (event.key === "Enter" || event.key === " ")
      markLine({ level, line: column.shown[column.current] }, true);
    else if (event.key === "Escape") unpin();
    else return;
    event.preventDefault();
  });
  return column;
}

/** Lets go of a line that is pinned. */
function unpin() {
  state.pinned = false;
  state.mark = null;
  emit("mark");
}

/**
 * The lines with a negative number where there is something else: -1 where some are left out between two,
 * and in the sources -2 - n before the first line of source n.
 */
function withGaps(level, lines) {
  const shown = [];
  lines.forEach((line, index) => {
    const source = level ? null : levels[0].places[line].source;
    if (!level && (!index || levels[0].places[lines[index - 1]].source !== source))
      shown.push(-2 - source);
    else if (index && line !== lines[index - 1] + 1) shown.push(-1);
    shown.push(line);
  });
  return shown;
}

function drawLine(level, line, language, id) {
  if (line === -1) return el("div", { class: "line gap", role: "presentation", id }, "⋯");
  if (line < 0)
    return el(
      "div",
      { class: "line gap file", role: "presentation", id },
      fileName(`sources.${-2 - line}.file`),
    );
  const place = level ? null : levels[0].places[line];
  const name = place ? data.sources[place.source].first + place.line : line;
  return el(
    "div",
    { class: "line", role: "option", id, "data-line": line },
    el("span", { class: "tick", "aria-hidden": "true" }, String(name)),
    el("code", {}, coloured(levels[level].lines[line], language)),
  );
}

/** Where in the whole column the marks are. */
function drawStrip(strip, column) {
  const ticks = [];
  const height = 100 / Math.max(1, column.shown.length, column.view.clientHeight / LINE);
  let last = null;
  column.shown.forEach((line, index) => {
    if (!column.marks.has(line)) return;
    if (last && last.end >= index - column.shown.length / 200) last.end = index + 1;
    else ticks.push((last = { begin: index, end: index + 1 }));
  });
  strip.replaceChildren(
    ...ticks.map(({ begin, end }) =>
      el("i", { style: { top: `${begin * height}%`, height: `${(end - begin) * height}%` } }),
    ),
  );
}
