// Every decision of every pass, with its reason, in a table that filters.

const SHOWN = 150; // rows that are drawn at once

function drawDecisions(main) {
  const body = el("tbody", {});
  const text = el("input", {
    type: "search",
    id: "filter",
    autocomplete: "off",
    input: () => draw(SHOWN),
  });
  const outcome = el(
    "select",
    { id: "outcome", change: () => draw(SHOWN) },
    el("option", { value: "" }, "all"),
    el("option", { value: "fired" }, "fired"),
    el("option", { value: "declined" }, "declined"),
  );
  const mine = el("input", { type: "checkbox", id: "mine", change: () => draw(SHOWN) });
  const status = el("p", { class: "hint", role: "status" });
  const more = el("button", { type: "button", hidden: true }, "Show more");
  let shown = SHOWN;
  more.addEventListener("click", () => draw(shown + SHOWN * 4));
  function draw(most) {
    shown = most;
    const found = matching(text.value, outcome.value, mine.checked);
    body.replaceChildren(...found.slice(0, most).map(decisionRow));
    more.hidden = found.length <= most;
    status.textContent = found.length ? "" : "No decision matches.";
  }
  main.append(
    section(
      "decisions",
      2,
      "Decisions",
      el(
        "div",
        { class: "filters" },
        el("label", { for: "filter" }, "Filter"),
        text,
        el("label", { for: "outcome" }, "Outcome"),
        outcome,
        el("label", {}, mine, "of the selected kernel"),
      ),
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": "Decisions" },
        el(
          "table",
          { class: "decisions" },
          el("caption", { class: "hidden" }, "Decisions of all passes"),
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["pass", "kernel", "outcome", "reason"].map((head) =>
                el("th", { scope: "col" }, head),
              ),
            ),
          ),
          body,
        ),
      ),
      status,
      more,
    ),
  );
  on("kernel", () => draw(mine.checked ? SHOWN : shown));
  draw(SHOWN);
}

/** The indices of decisions that have every word of a text, an outcome, and the selected kernel if asked. */
function matching(text, outcome, mine) {
  const asked = text.toLowerCase().split(/\s+/).filter(Boolean);
  const name = mine && data.kernels[state.kernel] ? data.kernels[state.kernel].name : null;
  const found = [];
  data.decisions.forEach((decision, index) => {
    if (name !== null && decision.kernel !== name) return;
    if (outcome && decision.fired !== (outcome === "fired")) return;
    const whole = `${decision.pass} ${decision.kernel} ${decision.reason}`.toLowerCase();
    if (asked.every((word) => whole.includes(word))) found.push(index);
  });
  return found;
}

function decisionRow(index) {
  const path = `decisions.${index}`;
  const { fired, kernel } = data.decisions[index];
  const known = data.kernels.some((each) => each.name === kernel);
  const name = words(`${path}.kernel`, "all");
  return row(
    words(`${path}.pass`, "", "code"),
    known ? el("a", { href: `#${encodeURIComponent(kernel)}` }, name) : name,
    el("span", { class: fired ? "good" : "declined" }, fired ? "✓ fired" : "– declined"),
    words(`${path}.reason`, ""),
  );
}
