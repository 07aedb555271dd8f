// How a kernel came from Loop IR to Tile IR: what each pass changed, and the passes that declined.

function drawSchedule(parent) {
  const body = el("div", {});
  parent.append(section("schedule", 3, "Schedule, step by step", body));
  on("kernel", () => {
    const steps = data.kernels[state.kernel].steps.map((step, index) => ({
      ...step,
      path: `kernels.${state.kernel}.steps.${index}`,
    }));
    const fired = steps.filter((step) => step.fired);
    const declined = steps.filter((step) => !step.fired);
    body.replaceChildren(
      fired.length
        ? el("ol", { class: "steps" }, fired.map(drawStep))
        : none("No pass changed this kernel."),
      declined.length
        ? el(
            "details",
            { class: "declined" },
            el("summary", {}, "Passes that did nothing, and why"),
            table(
              "Passes that did nothing",
              ["pass", "reason"],
              declined.map((step) =>
                row(words(`${step.path}.pass`, "", "code"), words(`${step.path}.reason`)),
              ),
            ),
          )
        : "",
    );
  });
}

function drawStep(step) {
  const head = [
    el("b", {}, words(`${step.path}.pass`)),
    step.line ? words(`${step.path}.line`, "", "code") : null,
    el("span", { class: "reason" }, words(`${step.path}.reason`, "")),
  ];
  if (!step.diff || !step.diff.length) return el("li", {}, el("div", { class: "step" }, head));
  const details = el("details", { class: "step" }, el("summary", {}, head));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(drawDiff(step.diff));
  });
  return el("li", {}, details);
}

const SIGNS = { "+": "added", "-": "removed", "@": "hunk" };

function drawDiff(lines) {
  return el(
    "pre",
    { class: "diff", tabindex: 0, "aria-label": "What the pass changed" },
    lines.map((line) => el("code", { class: SIGNS[line[0]] || "same" }, line, "\n")),
  );
}
