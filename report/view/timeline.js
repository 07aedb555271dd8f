// A pipelined loop on the clock of the machine that executes Kernel IR: what is in flight meanwhile.

const BAR = 16; // pixels
const ZOOMS = [1, 2, 4, 8, 16, 32];
const NAMES = { wide: 170, narrow: 96 }; // pixels of the rows' names; page.css says the same
const TOP = 24;

function drawTimeline(parent) {
  const body = el("div", {});
  parent.append(section("timeline", 3, "Timeline", body));
  on("kernel", () => {
    const { timeline } = data.kernels[state.kernel];
    const names = window.innerWidth > 900 ? NAMES.wide : NAMES.narrow;
    const room = Math.max(360, body.clientWidth - names - 4);
    body.replaceChildren(
      ...(timeline
        ? oneTimeline(`kernels.${state.kernel}.timeline`, timeline, room)
        : [noTimeline(`kernels.${state.kernel}.no_timeline`)]),
    );
  });
}

function noTimeline(path) {
  const why = at(path) ? [": ", words(path)] : null;
  return el("p", { class: "none" }, "This kernel has no timeline", why, ".");
}

/** Lanes of each row, so that events which overlap stand below one another: for each event its lane. */
function lanesOf(timeline) {
  const ends = timeline.rows.map(() => []);
  const lanes = timeline.events.map(() => 0);
  const ordered = timeline.events
    .map((event, index) => ({ ...event, index }))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  for (const { row, begin, end, index } of ordered) {
    const free = ends[row].findIndex((last) => last <= begin);
    const lane = free < 0 ? ends[row].length : free;
    ends[row][lane] = Math.max(end, begin);
    lanes[index] = lane;
  }
  return { lanes, counts: ends.map((each) => Math.max(1, each.length)) };
}

function oneTimeline(path, timeline, room) {
  const { lanes, counts } = lanesOf(timeline);
  const tops = [];
  let y = TOP;
  for (const count of counts) {
    tops.push(y);
    y += count * (BAR + 2) + 8;
  }
  const frame = el("div", { class: "scroll timeline", tabindex: -1 });
  const readout = makeReadout(
    "Point at an event, or move with arrow keys; Enter goes to its line, + and - zoom.",
  );
  let zoom = 0;
  function draw(focused) {
    const width = room * ZOOMS[zoom];
    const scale = (width - 8) / Math.max(1, timeline.end);
    const picture = svg("svg", {
      width,
      height: y + 6,
      role: "group",
      "aria-label": "Events of the loop over time; the same as a table stands below it",
    });
    tops.forEach((top, index) =>
      picture.append(
        svg("rect", {
          class: index % 2 ? "stripe odd" : "stripe",
          x: 0,
          y: top - 4,
          width,
          height: counts[index] * (BAR + 2) + 8,
        }),
      ),
    );
    const items = timeline.events.map((_, index) =>
      eventBar(
        path,
        timeline,
        index,
        tops[timeline.events[index].row] + lanes[index] * (BAR + 2),
        scale,
      ),
    );
    picture.append(...timeTicks(timeline.end, scale, y), ...items);
    const say = (index) => {
      readout.say(...eventWords(path, timeline, index));
      markEvent(timeline.events[index], false);
    };
    speaking(items, say, (index) => markEvent(timeline.events[index], true));
    picture.addEventListener("pointerleave", () => markLine(null));
    const places = timeline.events.map((event, index) => ({
      x: ((event.begin + event.end) / 2) * scale,
      y: (tops[event.row] + lanes[index] * (BAR + 2)) * 4,
    }));
    roving(picture, items, (key, from) => nearest(places, from, key), Math.max(0, focused));
    frame.replaceChildren(picture);
    if (focused >= 0) items[focused].focus({ preventScroll: true });
  }
  draw(-1);
  function change(by) {
    const middle = (frame.scrollLeft + frame.clientWidth / 2) / ZOOMS[zoom];
    zoom = Math.max(0, Math.min(ZOOMS.length - 1, zoom + by));
    draw([...frame.querySelectorAll(".event")].indexOf(document.activeElement));
    frame.scrollLeft = middle * ZOOMS[zoom] - frame.clientWidth / 2;
  }
  frame.addEventListener("keydown", (event) => {
    const by = { "+": 1, "=": 1, "-": -1 }[event.key];
    if (by && !event.ctrlKey && !event.metaKey) change(by);
  });
  const names = el(
    "div",
    { class: "rows", "aria-hidden": "true" },
    timeline.rows.map((_, index) =>
      el("div", { style: { top: `${tops[index] - 2}px` } }, words(`${path}.rows.${index}`)),
    ),
  );
  return [
    el(
      "p",
      {},
      "Loop ",
      lineButton("kernel", timeline.line, words(`${path}.loop`, "", "code")),
      ", over ",
      number(`${path}.end`, "count"),
      " ",
      words(`${path}.unit`),
      ". ",
      el("button", { type: "button", click: () => change(-1), "aria-label": "Zoom out" }, "−"),
      " ",
      el("button", { type: "button", click: () => change(1), "aria-label": "Zoom in" }, "+"),
    ),
    el("div", { class: "with-rows" }, names, frame),
    readout.element,
    eventTable(path, timeline),
  ];
}

/** Lines at round numbers of the clock, some 90 pixels apart or more. */
function timeTicks(end, scale, bottom) {
  const rough = 10 ** Math.floor(Math.log10(90 / scale));
  const step = Math.max(1, rough * ([1, 2, 5].find((times) => rough * times * scale >= 90) || 10));
  const ticks = [];
  for (let time = 0; time <= end; time += step) {
    const x = time * scale;
    ticks.push(
      svg("line", { class: "thin", x1: x, x2: x, y1: TOP - 4, y2: bottom }),
      svg(
        "text",
        { class: time ? "tick middle" : "tick", x: x + (time ? 0 : 2), y: 13 },
        String(time),
      ),
    );
  }
  return ticks;
}

/** Marks the line of an event, or goes to it. */
function markEvent({ line }, go) {
  const level = levelNamed("kernel");
  if (line === null || level < 0) return;
  if (go) goToLine(level, line);
  else markLine({ level, line });
}

function eventBar(path, timeline, index, top, scale) {
  const event = timeline.events[index];
  const [x, width] = [event.begin * scale, Math.max(3, (event.end - event.begin) * scale)];
  const kind = event.turn === null ? "no-turn" : event.turn % 2 ? "turn-odd" : "turn-even";
  const item = svg(
    "g",
    { class: `event ${kind}`, role: "button" },
    svg("rect", { x, y: top, width, height: BAR, rx: 2 }),
  );
  item.setAttribute("aria-label", event.name);
  if (event.name.length * LETTER + 8 < width)
    item.append(
      svg(
        "text",
        { class: "label", x: x + 4, y: top + BAR - 4 },
        words(`${path}.events.${index}.name`, "", "svg:tspan"),
      ),
    );
  return item;
}

function eventWords(path, timeline, index) {
  const event = timeline.events[index];
  const each = `${path}.events.${index}`;
  return [
    words(`${path}.rows.${event.row}`),
    ": ",
    words(`${each}.name`, "", "code"),
    ", from ",
    number(`${each}.begin`, "count"),
    " to ",
    number(`${each}.end`, "count"),
    event.turn === null ? "" : [", turn ", number(`${each}.turn`, "count")],
  ];
}

function eventTable(path, timeline) {
  const rows = timeline.events.map((event, index) =>
    row(
      words(`${path}.rows.${event.row}`),
      lineButton("kernel", event.line, words(`${path}.events.${index}.name`, "", "code")),
      number(`${path}.events.${index}.begin`, "count"),
      number(`${path}.events.${index}.end`, "count"),
      event.turn === null ? "" : number(`${path}.events.${index}.turn`, "count"),
    ),
  );
  return alternative(table("Events", ["row", "event", "begin", "end", "turn"], rows));
}
