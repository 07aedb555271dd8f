// Operations a second over operations a byte: what memory and arithmetic allow, and where each kernel is.

const ROOF = { height: 400, left: 62, right: 18, top: 16, bottom: 44 };

/** The kernels that have a place: [{index, x: operations a byte, y: operations a second, measured}]. */
function roofPoints() {
  const points = [];
  data.kernels.forEach((kernel, index) => {
    const { cost } = kernel;
    if (!cost || !cost.operations || !cost.bytes) return;
    const x = cost.operations / cost.bytes;
    const measured = kernel.measured_seconds !== null;
    const roofs = [
      cost.peak,
      data.target.bytes_per_second && x * data.target.bytes_per_second,
    ].filter(Boolean);
    if (!measured && roofs.length < 2) return;
    points.push({
      index,
      x,
      y: measured ? cost.operations / kernel.measured_seconds : Math.min(...roofs),
      measured,
    });
  });
  return points;
}

function drawRoofline(main) {
  const points = roofPoints();
  const { peaks, bytes_per_second: rate } = data.target;
  const whole = section("roofline", 2, "Roofline", roofFacts());
  main.append(whole);
  if (!points.length && !(rate && peaks.length)) {
    whole.append(none("What memory and arithmetic of this target allow is not known."));
    return;
  }
  const readout = makeReadout("Point at a kernel, or move to it with arrow keys.");
  let select = () => {};
  const frame = fitted(480, 1200, (width) => {
    const { picture, items } = roofPicture(points, width, readout);
    select = () =>
      items.forEach((item, index) => {
        item.classList.toggle("selected", points[index].index === state.kernel);
        item.setAttribute("aria-pressed", points[index].index === state.kernel);
      });
    select();
    return picture;
  });
  on("kernel", () => select());
  if (!points.length)
    readout.say("No kernel has a place here: its operations, bytes or peak are not known.");
  whole.append(
    frame,
    readout.element,
    el(
      "p",
      { class: "hint" },
      "A full point is measured; an empty one is the most that the roofs allow.",
    ),
    roofTable(),
  );
}

function roofPicture(points, width, readout) {
  const scale = roofScale(points, width);
  const picture = svg("svg", {
    width,
    height: ROOF.height,
    role: "group",
    "aria-label": "Roofline; the same as a table stands below it",
  });
  picture.append(...roofAxes(scale), ...roofLines(scale));
  const places = points.map(({ x, y }) => ({ x: scale.x(x), y: scale.y(y) }));
  const plates = nameplates(
    points.map(({ index }, each) => ({
      ...places[each],
      letters: data.kernels[index].name.length,
    })),
    ROOF.left,
    width,
  );
  const items = points.map((point, index) => roofPoint(point, places[index], plates[index], width));
  picture.append(...items);
  speaking(
    items,
    (index) => readout.say(...roofWords(points[index])),
    (index) => selectKernel(points[index].index),
  );
  roving(picture, items, (key, from) => nearest(places, from, key));
  return { picture, items };
}

/** Where values stand: both axes are logarithmic and end at powers of ten. */
function roofScale(points, width) {
  const { peaks, bytes_per_second: rate } = data.target;
  const limits = peaks.map((peak) => peak.per_second);
  const across = [
    ...points.map((point) => point.x),
    ...(rate ? limits.map((limit) => limit / rate) : []),
  ];
  const up = points.length ? points.map((point) => point.y) : limits.map((limit) => limit / 100);
  const xs = decades(Math.min(...across) * 0.7, Math.max(...across) * 1.5);
  const ys = decades(Math.min(...up) * 0.7, Math.max(...limits, ...up) * 1.2);
  const share = (value, exponents) =>
    (Math.log10(value) - exponents[0]) / (exponents.at(-1) - exponents[0]);
  const [right, bottom] = [width - ROOF.right, ROOF.height - ROOF.bottom];
  return {
    xs,
    ys,
    right,
    bottom,
    x: (value) => ROOF.left + share(value, xs) * (right - ROOF.left),
    y: (value) => bottom - share(value, ys) * (bottom - ROOF.top),
  };
}

function roofFacts() {
  return facts([
    ["memory", number("target.bytes_per_second", "bytes/s")],
    ...data.target.peaks.map((_, index) => [
      words(`target.peaks.${index}.name`),
      number(`target.peaks.${index}.per_second`, "operations/s"),
    ]),
    ["these are from", words("target.source", "not known")],
  ]);
}

function roofAxes(scale) {
  const { bottom, right } = scale;
  const vertical = scale.xs.map((exponent) => {
    const x = scale.x(10 ** exponent);
    return [
      svg("line", { class: "thin", x1: x, x2: x, y1: ROOF.top, y2: bottom }),
      svg("text", { class: "tick middle", x, y: bottom + 15 }, power(exponent)),
    ];
  });
  const horizontal = scale.ys.map((exponent) => {
    const y = scale.y(10 ** exponent);
    return [
      svg("line", { class: "thin", x1: ROOF.left, x2: right, y1: y, y2: y }),
      svg("text", { class: "tick end", x: ROOF.left - 6, y: y + 4 }, power(exponent)),
    ];
  });
  return [
    ...vertical.flat(),
    ...horizontal.flat(),
    svg("text", { class: "axis end", x: right, y: bottom + 34 }, "operations a byte"),
    svg(
      "text",
      { class: "axis end", x: 0, y: 0, transform: `translate(14 ${ROOF.top}) rotate(-90)` },
      "operations a second",
    ),
  ];
}

/** The slope of memory up to the highest peak, and a level line for each peak from that slope on. */
function roofLines(scale) {
  const { peaks, bytes_per_second: rate } = data.target;
  const [first, last] = [10 ** scale.xs[0], 10 ** scale.xs.at(-1)];
  const lines = peaks.map((peak, index) => {
    const begin = rate ? Math.min(last, Math.max(first, peak.per_second / rate)) : first;
    const y = scale.y(peak.per_second);
    return [
      svg("line", { class: "roof compute", x1: scale.x(begin), x2: scale.x(last), y1: y, y2: y }),
      svg(
        "text",
        { class: "label end compute", x: scale.x(last) - 4, y: y - 5 },
        words(`target.peaks.${index}.name`, "", "svg:tspan"),
      ),
    ];
  });
  if (rate) {
    const most = Math.max(...peaks.map((peak) => peak.per_second), 10 ** scale.ys[0]);
    const begin = Math.max(first, 10 ** scale.ys[0] / rate);
    const end = Math.min(last, most / rate);
    const [x1, y1, x2, y2] = [
      scale.x(begin),
      scale.y(begin * rate),
      scale.x(end),
      scale.y(end * rate),
    ];
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    lines.push([
      svg("line", { class: "roof memory", x1, y1, x2, y2 }),
      svg(
        "text",
        {
          class: "label memory middle",
          x: 0,
          y: -6,
          transform: `translate(${(x1 * 2 + x2) / 3} ${(y1 * 2 + y2) / 3}) rotate(${angle})`,
        },
        "memory",
      ),
    ]);
  }
  return lines.flat();
}

function roofPoint(point, place, plate, width) {
  const { cost } = data.kernels[point.index];
  const item = svg(
    "g",
    {
      class: `point by-${cost.bound === "compute" ? "compute" : "memory"}`,
      "data-measured": point.measured,
      role: "button",
    },
    svg("circle", { class: "halo", cx: place.x, cy: place.y, r: 11 }),
    svg("circle", { class: "dot", cx: place.x, cy: place.y, r: 5 }),
  );
  // A name that has no place of its own is shown while its point has the focus.
  const beside =
    place.x < width / 2 ? { x: place.x + 14, anchor: "start" } : { x: place.x - 14, anchor: "end" };
  const { x, y, anchor } = plate || { ...beside, y: place.y + 4 };
  item.append(
    svg(
      "text",
      { class: plate ? "label" : "label covered", x, y, "text-anchor": anchor },
      words(`kernels.${point.index}.name`, "", "svg:tspan"),
    ),
  );
  return item;
}

function roofWords({ index, measured }) {
  const path = `kernels.${index}`;
  return [
    words(`${path}.name`, "", "code"),
    ": ",
    number(`${path}.cost.operations`, "operations"),
    " operations, ",
    number(`${path}.cost.bytes`, "bytes"),
    ", least ",
    number(leastTime(index), "seconds"),
    measured ? [", measured ", number(`${path}.measured_seconds`, "seconds")] : ", not measured",
    ", bound by ",
    bound(index),
  ];
}

function roofTable() {
  const rows = data.kernels.map((_, index) =>
    row(
      words(`kernels.${index}.name`),
      number(`kernels.${index}.cost.operations`, "operations"),
      number(`kernels.${index}.cost.bytes`, "bytes"),
      number(`kernels.${index}.cost.peak`, "operations/s"),
      number(leastTime(index), "seconds"),
      number(`kernels.${index}.measured_seconds`, "seconds"),
    ),
  );
  return alternative(
    table("Roofline", ["kernel", "operations", "bytes", "peak", "least time", "measured"], rows),
  );
}
