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
  return {
    element,
    say: (...parts) =>
      element.replaceChildren(...parts.flat(Infinity).filter((part) => part !== null)),
  };
}

/** Has items say what they are when pointed at or focused, and do `act` on click, Enter and space. */
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

/**
 * Where the names of points stand so that they cover neither one another nor a point: for each
 * point {x, y, anchor}, or null where there is no such place.
 *
 * `points`: [{x, y, letters}]; names stand between `left` and `right`.
 */
function nameplates(points, left, right) {
  const taken = points.map(({ x, y }) => ({
    left: x - 6,
    right: x + 6,
    top: y - 6,
    bottom: y + 6,
  }));
  return points.map(({ x, y, letters }, index) => {
    const long = letters * LETTER;
    const places = [
      { x: x + 10, y: y + 4, anchor: "start", left: x + 9 },
      { x: x - 10, y: y + 4, anchor: "end", left: x - 11 - long },
      { x, y: y - 11, anchor: "middle", left: x - long / 2 },
      { x, y: y + 20, anchor: "middle", left: x - long / 2 },
    ].map((place) => ({
      ...place,
      right: place.left + long,
      top: place.y - 10,
      bottom: place.y + 3,
    }));
    const free = places.find(
      (place) =>
        place.left > left &&
        place.right < right &&
        taken.every(
          (other, each) =>
            each === index ||
            place.right < other.left ||
            place.left > other.right ||
            place.bottom < other.top ||
            place.top > other.bottom,
        ),
    );
    if (free) taken.push(free);
    return free || null;
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
