// The arena over time: when each buffer lives, and where.

const ARENA = { width: 1100, height: 360, left: 12, right: 12, top: 10, bottom: 96 };

function drawMemory(main) {
  const { arena_bytes: bytes, steps, buffers } = data.memory;
  const inside = buffers.map((buffer, index) => ({ ...buffer, index })).filter((buffer) => buffer.offset !== null);
  const placed = bytes ? inside.filter((buffer) => buffer.bytes !== null) : [];
  const outside = buffers.map((buffer, index) => ({ ...buffer, index })).filter((buffer) => buffer.offset === null);
  const whole = section("memory", 2, "Memory plan",
    facts([["arena", number("memory.arena_bytes", "bytes")], ["buffers", number("memory.buffers.length", "count")]]));
  if (placed.length) whole.append(...arenaPicture(placed, bytes, steps));
  else whole.append(none("No buffer is in the arena."));
  if (outside.length) {
    const rows = outside.map(({ index }) => bufferRow(index));
    whole.append(el("h3", {}, "Results, outside the arena"), table("Results outside the arena", BUFFER_HEADS, rows));
  }
  main.append(whole);
}

const BUFFER_HEADS = ["buffer", "type", "bytes", "offset", "from step", "to step"];

function bufferRow(index) {
  const path = `memory.buffers.${index}`;
  const { offset } = at(path);
  return row(words(`${path}.name`, "", "code"), words(`${path}.type`), number(`${path}.bytes`, "bytes"),
    offset === null ? "outside" : number(`${path}.offset`, "bytes"), number(`${path}.first`, "count"), number(`${path}.last`, "count"));
}

function arenaPicture(buffers, bytes, steps) {
  const [right, bottom] = [ARENA.width - ARENA.right, ARENA.height - ARENA.bottom];
  const step = (right - ARENA.left) / Math.max(1, steps.length);
  const x = (number) => ARENA.left + number * step;
  const y = (offset) => bottom - (offset / bytes) * (bottom - ARENA.top);
  const picture = svg("svg", { class: "plot arena", viewBox: `0 0 ${ARENA.width} ${ARENA.height}`, role: "group", "aria-label": "Memory over the steps of a run; the same as a table stands below it" });
  picture.append(svg("rect", { class: "ground", x: ARENA.left, y: ARENA.top, width: right - ARENA.left, height: bottom - ARENA.top }));
  const every = Math.max(1, Math.ceil(14 / step));
  steps.forEach((_, index) => {
    picture.append(svg("line", { class: "thin", x1: x(index), x2: x(index), y1: ARENA.top, y2: bottom }));
    if (index % every) return;
    picture.append(svg("text", { class: "label", transform: `translate(${x(index + 0.5) - 3} ${bottom + 12}) rotate(35)` }, shortened(`memory.steps.${index}`, 22)));
  });
  const items = buffers.map((buffer) => {
    const [left, top] = [x(buffer.first), y(buffer.offset + buffer.bytes)];
    const [width, height] = [x(buffer.last + 1) - left, Math.max(2, y(buffer.offset) - top)];
    const item = svg("g", { class: `buffer tone-${buffer.index % 4}`, role: "img", "aria-label": buffer.name },
      svg("rect", { x: left + 1, y: top + 0.5, width: Math.max(2, width - 2), height: Math.max(1.5, height - 1), rx: 2 }));
    const path = `memory.buffers.${buffer.index}`;
    if (height > 13 && width > buffer.name.length * 7 + 8) item.append(svg("text", { class: "label", x: left + 6, y: top + Math.min(height / 2 + 4, 15) }, words(`${path}.name`, "", "svg:tspan")));
    if (height > 30 && width > 80) item.append(svg("text", { class: "label", x: left + 6, y: top + 29 }, number(`${path}.bytes`, "bytes", "tspan")));
    return item;
  });
  picture.append(...items);
  const readout = makeReadout("Point at a buffer, or move with arrow keys. Steps go from left to right, offsets from bottom to top.");
  speaking(items, (index) => {
    const path = `memory.buffers.${buffers[index].index}`;
    readout.say(words(`${path}.name`, "", "code"), " ", words(`${path}.type`), ": ", number(`${path}.bytes`, "bytes"), " at ", number(`${path}.offset`, "bytes"),
      ", from ", words(`memory.steps.${buffers[index].first}`, "", "code"), " to ", words(`memory.steps.${buffers[index].last}`, "", "code"));
  });
  const places = buffers.map((buffer) => ({ x: x((buffer.first + buffer.last + 1) / 2), y: y(buffer.offset + buffer.bytes / 2) }));
  roving(picture, items, (key, from) => nearest(places, from, key));
  return [
    el("div", { class: "scroll", tabindex: -1 }, picture), readout.element,
    alternative(table("Buffers in the arena", BUFFER_HEADS, buffers.map(({ index }) => bufferRow(index)))),
  ];
}

/** The text at a path, cut where there is no room. */
function shortened(path, most) {
  const text = at(path);
  const node = words(path, "", "svg:tspan");
  if (text.length > most) node.textContent = `${text.slice(0, most - 1)}…`;
  return node;
}
