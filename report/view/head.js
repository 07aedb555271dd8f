// What the program is, the bar at the top with the kernel that is selected, and that kernel's facts.

const SECTIONS = [
  ["graph", "Graph"],
  ["kernel", "Kernel"],
  ["texts", "Texts"],
  ["schedule", "Schedule"],
  ["accesses", "Accesses"],
  ["timeline", "Timeline"],
  ["roofline", "Roofline"],
  ["memory", "Memory"],
  ["compile", "Compile time"],
  ["decisions", "Decisions"],
];

/** Goes to a section and leaves the address to the kernel. */
function goTo(event, id) {
  event.preventDefault();
  const target = document.getElementById(`${id}-title`) || document.getElementById(id);
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "start" });
}

function drawBar(bar) {
  const links = SECTIONS.map(([id, title]) =>
    el("li", {}, el("a", { href: `#${id}-title`, click: (event) => goTo(event, id) }, title)),
  );
  const select = el(
    "select",
    { id: "kernel-choice", change: (event) => selectKernel(Number(event.target.value)) },
    data.kernels.map((_, index) =>
      el(
        "option",
        { value: index, "data-text": `kernels.${index}.name` },
        data.kernels[index].name,
      ),
    ),
  );
  const step = (by) => () => selectKernel(state.kernel + by);
  const previous = el(
    "button",
    { type: "button", "aria-label": "Previous kernel", click: step(-1) },
    "‹",
  );
  const next = el("button", { type: "button", "aria-label": "Next kernel", click: step(1) }, "›");
  bar.append(
    el("nav", { "aria-label": "Sections" }, el("ul", {}, links)),
    data.kernels.length
      ? el(
          "div",
          { class: "choice" },
          el("label", { for: "kernel-choice" }, "Kernel"),
          previous,
          select,
          next,
        )
      : "",
  );
  on("kernel", () => {
    select.value = String(state.kernel);
    previous.disabled = state.kernel <= 0;
    next.disabled = state.kernel >= data.kernels.length - 1;
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
}

/** The title, and the figures of the whole program. `totals` is there in reports that sum their kernels. */
function drawHead(main) {
  const totals = data.totals || {};
  const target = data.target;
  const name = [
    words("target.name"),
    target.description ? [" · ", words("target.description")] : null,
  ];
  main.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, words("program")),
      el("p", { class: "by" }, "compiled by deplo ", words("deplo"), " for ", name),
      facts([
        ["kernels", number("kernels.length", "count")],
        "launches" in totals && ["launches", number("totals.launches", "count")],
        "bytes" in totals && ["bytes moved", number("totals.bytes", "bytes")],
        "least_seconds" in totals && ["least time", number("totals.least_seconds", "seconds")],
        ["launches and calls", number("memory.steps.length", "count")],
        ["calls of other code", number("calls.length", "count")],
        ["arena", number("memory.arena_bytes", "bytes")],
        ["compiled in", number("compile.seconds", "seconds")],
      ]),
      data.run ? drawRun() : null,
      (data.notes || []).map((_, index) => el("p", { class: "note" }, words(`notes.${index}`))),
    ),
  );
}

function drawRun() {
  const { agrees } = data.run;
  return el(
    "div",
    { class: "run" },
    facts([
      ["run", number("run.seconds", "seconds")],
      ["eager PyTorch", number("run.eager_seconds", "seconds")],
      ["largest difference", number("run.largest_difference", "plain")],
      [
        "result",
        el(
          "span",
          { class: agrees ? "good" : "bad" },
          agrees ? "✓ agrees with eager" : "✗ differs from eager",
        ),
      ],
    ]),
  );
}

/** The section of the selected kernel: its facts; the sections behind it are its own, too. */
function drawKernel(main) {
  const body = el("div", {});
  const name = el("span", {});
  const whole = section("kernel", 2, el("span", {}, "Kernel ", name), body);
  main.append(whole);
  on("kernel", () => {
    const at = `kernels.${state.kernel}`;
    name.replaceChildren(words(`${at}.name`, "", "code"));
    body.replaceChildren(...kernelFacts(at));
  });
  return whole;
}

function kernelFacts(path) {
  const kernel = at(path);
  const cost =
    kernel.cost &&
    facts([
      ["bound by", bound(state.kernel)],
      ["bytes", number(`${path}.cost.bytes`, "bytes")],
      ["operations", number(`${path}.cost.operations`, "operations")],
      ["memory time", number(`${path}.cost.memory_seconds`, "seconds")],
      ["compute time", number(`${path}.cost.compute_seconds`, "seconds")],
      ["peak", number(`${path}.cost.peak`, "operations/s")],
    ]);
  const resources =
    kernel.resources &&
    facts([
      ["registers", number(`${path}.resources.registers`, "count")],
      ["spill loads", number(`${path}.resources.spill_loads`, "count")],
      ["spill stores", number(`${path}.resources.spill_stores`, "count")],
      ["stack", number(`${path}.resources.stack_bytes`, "bytes")],
      ["shared memory", number(`${path}.resources.shared_bytes`, "bytes")],
    ]);
  const occupancy =
    kernel.occupancy &&
    facts([
      ["share", number(`${path}.occupancy.share`, "share")],
      ["limited by", words(`${path}.occupancy.limit`)],
      ["blocks", number(`${path}.occupancy.blocks`, "count")],
      ["threads", number(`${path}.occupancy.threads`, "count")],
    ]);
  const launch = facts([
    ["launches", number(`${path}.launches`, "count")],
    ["blocks", words(`${path}.blocks`, "not known", "code")],
    ["threads", number(`${path}.threads`, "count")],
    ["measured", number(`${path}.measured_seconds`, "seconds")],
  ]);
  const group = (title, body) =>
    el(
      "div",
      { class: "group" },
      el("h3", {}, title),
      body || el("p", { class: "unknown" }, "not known"),
    );
  return [
    el(
      "div",
      { class: "groups" },
      group("Launch", launch),
      group("Cost", cost),
      data.target.gpu
        ? [group("Resources", resources), group("Occupancy of a processor", occupancy)]
        : null,
    ),
    facts([
      ["from", fileName(`${path}.location`, "not known")],
      ["merged into it", list(`${path}.fused`, "nothing", "code")],
      ["schedule", words(`${path}.schedule`, "none", "code")],
    ]),
    kernel.not_fused.length
      ? el(
          "details",
          { class: "declined" },
          el("summary", {}, "What was not merged, and why"),
          el(
            "ul",
            {},
            kernel.not_fused.map((_, index) => el("li", {}, words(`${path}.not_fused.${index}`))),
          ),
        )
      : "",
  ];
}
