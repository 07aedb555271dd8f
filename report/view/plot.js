// What pictures share: axes, and the line of text below that says what is pointed at.

/** Pixels of a letter of a label, which is monospaced. */
const LETTER = 6.8;

const POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function power(exponent) {
  const shown = [...String(Math.abs(exponent))].map((digit) => POWERS[digit]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${shown}`;
}

/** A line below a picture that says what is pointed at or focused. */
function makeReadout(hint) {
  const element = el("p", { class: "readout", "aria-live": "polite" }, hint);
  return { element, say: (...parts) => element.replaceChildren(...parts.flat(Infinity).filter((part) => part !== null)) };
}

/** Has items say what they are when they are pointed at or focused, and do `act` on click, Enter and space. */
function speaking(items, say, act) {
  items.forEach((item, index) => {
    item.addEventListener("pointerenter", () => say(index));
    item.addEventListener("focus", () => say(index));
    if (!act) return;
    item.addEventListener("click", () => act(index));
    item.addEventListener("keydown", (event) => activate(event, () => act(index)));
  });
}

/** The powers of ten from the one at or below `least` to the one at or above `most`. */
function decades(least, most) {
  const [first, last] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
  return Array.from({ length: Math.max(1, last - first) + 1 }, (_, index) => first + index);
}

/** Names that stand beside points and do not cover one another: for each point, whether it is named. */
function readable(points, width) {
  const taken = [];
  return points.map(({ x, y }) => {
    const free = taken.every((other) => Math.abs(other.y - y) > 13 || Math.abs(other.x - x) > width);
    if (free) taken.push({ x, y });
    return free;
  });
}

/** A frame whose picture is drawn anew where its width changes; `draw(width)` returns it. */
function fitted(least, most, draw) {
  const frame = el("div", { class: "scroll", tabindex: -1 });
  let width = 0;
  const fit = () => {
    const now = Math.max(least, Math.min(most, frame.clientWidth || most));
    if (Math.abs(now - width) < 2) return;
    width = now;
    frame.replaceChildren(draw(width));
  };
  fit();
  new ResizeObserver(fit).observe(frame);
  return frame;
}
