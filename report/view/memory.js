// The arena over time: when each buffer lives, and where.

const ARENA = { height: 280, side: 6, top: 8 };

function drawMemory(main) {
  const { arena_bytes: bytes, steps, buffers } = data.memory;
  const inside = buffers
    .map((buffer, index) => ({ ...buffer, index }))
    .filter((buffer) => buffer.offset !== null);
  const placed = bytes ? inside.filter((buffer) => buffer.bytes !== null) : [];
  const outside = buffers
    .map((buffer, index) => ({ ...buffer, index }))
    .filter((buffer) => buffer.offset === null);
  const whole = section(
    "memory",
    2,
    "Memory plan",
    facts([
      ["arena", number("memory.arena_bytes", "bytes")],
      ["buffers", number("memory.buffers.length", "count")],
    ]),
  );
  if (placed.length) whole.append(...arenaPicture(placed, bytes, steps));
  else whole.append(none("No buffer is in the arena."));
  if (outside.length) {
    const rows = outside.map(({ index }) => bufferRow(index));
    whole.append(
      el("h3", {}, "Results, outside the arena"),
      table("Results outside the arena", BUFFER_HEADS, rows),
    );
  }
  main.append(whole);
}

const BUFFER_HEADS = ["buffer", "type", "bytes", "offset", "from step", "to step"];

function bufferRow(index) {
  const path = `memory.buffers.${index}`;
  const { offset } = at(path);
  return row(
    words(`${path}.name`, "", "code"),
    words(`${path}.type`),
    number(`${path}.bytes`, "bytes"),
    offset === null ? "outside" : number(`${path}.offset`, "bytes"),
    number(`${path}.first`, "count"),
    number(`${path}.last`, "count"),
  );
}

function arenaPicture(buffers, bytes, steps) {
  const readout = makeReadout(
    "Point at a buffer, or move with arrow keys. Steps go from left to right, offsets from bottom to top.",
  );
  return [
    fitted(480, 1640, (width) => drawArena(buffers, bytes, steps, width, readout)),
    readout.element,
    alternative(
      table(
        "Buffers in the arena",
        BUFFER_HEADS,
        buffers.map(({ index }) => bufferRow(index)),
      ),
    ),
  ];
}

function drawArena(buffers, bytes, steps, width, readout) {
  const [right, bottom] = [width - ARENA.side, ARENA.height];
  const step = (right - ARENA.side) / Math.max(1, steps.length);
  const x = (number) => ARENA.side + number * step;
  const y = (offset) => bottom - (offset / bytes) * (bottom - ARENA.top);
  const flat = steps.every((name) => name.length * LETTER < step);
  const picture = svg("svg", {
    class: "arena",
    width,
    height: bottom + (flat ? 24 : 104),
    role: "group",
    "aria-label": "Memory over the steps of a run; the same as a table stands below it",
  });
  picture.append(
    svg("rect", {
      class: "ground",
      x: ARENA.side,
      y: ARENA.top,
      width: right - ARENA.side,
      height: bottom - ARENA.top,
    }),
  );
  const every = Math.max(1, Math.ceil(14 / step));
  steps.forEach((_, index) => {
    picture.append(
      svg("line", { class: "thin", x1: x(index), x2: x(index), y1: ARENA.top, y2: bottom }),
    );
    if (index % every) return;
    const place = flat
      ? `translate(${x(index + 0.5)} ${bottom + 15})`
      : `translate(${x(index + 0.5) - 3} ${bottom + 12}) rotate(40)`;
    // Names that end beyond the picture would be cut there.
    const room = flat ? 99 : Math.min(20, Math.floor((width - x(index + 0.5)) / (LETTER * 0.78)));
    if (room > 4)
      picture.append(
        svg(
          "text",
          { class: flat ? "label middle" : "label", transform: place },
          shortened(`memory.steps.${index}`, room, "svg:tspan"),
        ),
      );
  });
  const items = buffers.map((buffer) => {
    const [left, top] = [x(buffer.first), y(buffer.offset + buffer.bytes)];
    return drawBuffer(
      buffer,
      left,
      top,
      x(buffer.last + 1) - left,
      Math.max(2, y(buffer.offset) - top),
    );
  });
  picture.append(...items);
  speaking(items, (index) => {
    const path = `memory.buffers.${buffers[index].index}`;
    readout.say(
      words(`${path}.name`, "", "code"),
      " ",
      words(`${path}.type`),
      ": ",
      number(`${path}.bytes`, "bytes"),
      " at ",
      number(`${path}.offset`, "bytes"),
      ", from ",
      words(`memory.steps.${buffers[index].first}`, "", "code"),
      " to ",
      words(`memory.steps.${buffers[index].last}`, "", "code"),
    );
  });
  const places = buffers.map((buffer) => ({
    x: x((buffer.first + buffer.last + 1) / 2),
    y: y(buffer.offset + buffer.bytes / 2),
  }));
  roving(picture, items, (key, from) => nearest(places, from, key));
  return picture;
}

function drawBuffer(buffer, left, top, width, height) {
  const path = `memory.buffers.${buffer.index}`;
  const item = svg(
    "g",
    { class: `buffer tone-${buffer.index % 4}`, role: "img", "aria-label": buffer.name },
    svg("rect", {
      x: left + 1,
      y: top + 0.5,
      width: Math.max(2, width - 2),
      height: Math.max(1.5, height - 1),
      rx: 2,
    }),
  );
  if (height > 13 && width > buffer.name.length * LETTER + 8) {
    item.append(
      svg(
        "text",
        { class: "label", x: left + 6, y: top + Math.min(height / 2 + 4, 15) },
        words(`${path}.name`, "", "svg:tspan"),
      ),
    );
  }
  if (height > 30 && width > 80)
    item.append(
      svg(
        "text",
        { class: "label", x: left + 6, y: top + 29 },
        number(`${path}.bytes`, "bytes", "tspan"),
      ),
    );
  return item;
}
