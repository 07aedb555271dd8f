// Unpacks the data and draws the page.

/** The data that the page carries: JSON, by gzip, in base64. */
async function unpack() {
  const text = atob(document.getElementById("data").textContent.trim());
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** The kernel that the address names; -1 if it names none. */
function kernelOfAddress() {
  let name = location.hash.slice(1);
  try {
    name = decodeURIComponent(name);
  } catch {
    return -1; // no address of ours
  }
  return data.kernels.findIndex((kernel) => kernel.name === name);
}

function draw() {
  const main = document.getElementById("main");
  drawHead(main);
  drawBar(document.getElementById("bar"));
  drawGraph(main);
  if (data.kernels.length) {
    const kernel = drawKernel(main);
    drawTexts(kernel);
    drawSchedule(kernel);
    drawAccesses(kernel);
    drawTimeline(kernel);
  } else {
    main.append(section("kernel", 2, "Kernel", none("The program has no kernels.")));
  }
  drawRoofline(main);
  drawMemory(main);
  drawFlame(main);
  drawDecisions(main);
  selectKernel(Math.max(0, kernelOfAddress()));
  window.addEventListener("hashchange", () => {
    const index = kernelOfAddress();
    if (index >= 0) selectKernel(index);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.pinned) unpin();
  });
}

unpack().then(
  (found) => {
    data = found;
    prepareLevels();
    draw();
    document.documentElement.dataset.ready = "";
  },
  (error) => {
    const main = document.getElementById("main");
    main.append(el("p", { class: "none" }, `This browser cannot unpack the report: ${error}`));
  },
);
