// Elements, keys, and the state that all views share.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Texts become text nodes, so no text of the data is ever markup. */
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

let ids = 0;
function fresh(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** A section with a heading, and what it shows. `level` is that of the heading. */
function section(id, level, title, ...children) {
  const heading = el(`h${level}`, { id: `${id}-title`, tabindex: -1 }, title);
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title`, class: `level-${level}` },
    heading,
    ...children,
  );
}

/** A table that scrolls on its own. Columns of figures are aligned to the right. */
function table(caption, heads, rows, attributes) {
  const figures = heads.map((_, index) => rows.some((each) => isFigure(each.children[index])));
  for (const each of rows)
    [...each.children].forEach((cell, index) =>
      cell.classList.toggle("figure", Boolean(figures[index])),
    );
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    el(
      "table",
      attributes || {},
      el("caption", { class: "hidden" }, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((head, index) =>
            el("th", { scope: "col", class: figures[index] ? "figure" : null }, head),
          ),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

function isFigure(cell) {
  return Boolean(
    cell &&
    cell.childNodes.length === 1 &&
    cell.firstElementChild &&
    cell.firstElementChild.matches(".number:not(.unknown)"),
  );
}

function row(...cells) {
  return el(
    "tr",
    {},
    cells.map((cell) => el("td", {}, cell)),
  );
}

/** What a picture says, as a table that opens. */
function alternative(...children) {
  return el(
    "details",
    { class: "alternative" },
    el("summary", {}, "The same as a table"),
    ...children,
  );
}

function none(text) {
  return el("p", { class: "none" }, text);
}

/** What is selected: a kernel by its index, and a line that is pointed at or pinned. */
const state = { kernel: -1, mark: null, pinned: false };
const listeners = { kernel: [], mark: [] };

function on(event, listener) {
  listeners[event].push(listener);
}

function emit(event) {
  for (const listener of listeners[event]) listener();
}

/** Selects a kernel everywhere, and names it in the address. */
function selectKernel(index) {
  if (index === state.kernel || !data.kernels[index]) return;
  const first = state.kernel < 0;
  state.kernel = index;
  state.mark = null;
  state.pinned = false;
  const hash = `#${encodeURIComponent(data.kernels[index].name)}`;
  if (location.hash !== hash) history[first ? "replaceState" : "pushState"](null, "", hash);
  emit("kernel");
  emit("mark");
}

/** Marks a line and its relatives; one that is pinned stays until another is pinned, or it is unpinned. */
function markLine(mark, pin) {
  if (state.pinned && !pin) return;
  const same =
    mark && state.mark && mark.level === state.mark.level && mark.line === state.mark.line;
  if (pin && same && state.pinned) {
    state.pinned = false;
  } else {
    if (same && !pin) return;
    state.mark = mark;
    state.pinned = Boolean(pin && mark);
  }
  emit("mark");
}

/** One tab stop for many items; arrows move among them as `next` says, by their indices. */
function roving(root, items, next, first) {
  const start = first || 0;
  // Browsers give a tab stop of its own to a picture that hears of focus.
  if (root.namespaceURI === SVG) root.setAttribute("tabindex", -1);
  items.forEach((item, index) => item.setAttribute("tabindex", index === start ? 0 : -1));
  const index = (event) => items.indexOf(event.target.closest("[tabindex]"));
  root.addEventListener("focusin", (event) => {
    const found = index(event);
    if (found >= 0)
      items.forEach((item, each) => item.setAttribute("tabindex", each === found ? 0 : -1));
  });
  root.addEventListener("keydown", (event) => {
    const found = index(event);
    if (found < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = next(event.key, found);
    if (to === undefined || to === null || !items[to]) return;
    event.preventDefault();
    items[to].focus();
  });
}

const DIRECTIONS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The place nearest to that at `from` in the direction of a key; undefined if there is none. */
function nearest(places, from, key) {
  if (!DIRECTIONS[key]) return undefined;
  const [dx, dy] = DIRECTIONS[key];
  let best;
  let least = Infinity;
  places.forEach((place, index) => {
    const x = place.x - places[from].x;
    const y = place.y - places[from].y;
    const along = x * dx + y * dy;
    if (index === from || along <= 0.5) return;
    const far = along + 2.5 * Math.abs(x * dy + y * dx);
    if (far < least) [best, least] = [index, far];
  });
  return best;
}

/** Enter and space do what a click does, where the element is no button. */
function activate(event, action) {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  action();
}
