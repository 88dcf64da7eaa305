// What is wrong with the texts of the figures on this page, a sentence each: those that leave their figure, that lie on
// another, and ticks of one axis that say the same.
() => {
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const leaves = (box, frame) =>
    box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  const wrong = new Set();
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const name = plot.closest("[class*=st-key-]").className.match(/st-key-(\S+)/)[1];
    const frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll(".main-svg .infolayer text, .main-svg [class$=tick] text")]
      .map((node) => ({ said: node.textContent, box: node.getBoundingClientRect(), axis: node.closest("[class$=tick]")?.parentNode }))
      .filter(({ said, box }) => said.trim() && box.width);
    for (const [at, { said, box, axis }] of texts.entries()) {
      if (leaves(box, frame)) wrong.add(`${name}: "${said}" leaves the figure`);
      for (const other of texts.slice(at + 1)) {
        if (overlap(box, other.box)) wrong.add(`${name}: "${said}" lies on "${other.said}"`);
        if (axis && axis === other.axis && said === other.said) wrong.add(`${name}: two ticks say "${said}"`);
      }
    }
  }
  return [...wrong];
}
