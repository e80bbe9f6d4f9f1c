// The run's metrics over its steps, small; a click goes to the rollouts behind a point.

const kCurve = {width: 104, height: 30, margin: 3};

// Maps steps and values to the picture's coordinates.
function scales_of(points, steps) {
  const values = points.flatMap(([, value, low, high]) => [value, low ?? value, high ?? value]);
  const low = Math.min(...values), high = Math.max(...values), first = steps[0], last = steps[1];
  return {x: step => kCurve.margin + (last > first ? (step - first) / (last - first) : 0.5) * (kCurve.width - 2 * kCurve.margin),
          y: value => kCurve.height - kCurve.margin - (high > low ? (value - low) / (high - low) : 0.5) * (kCurve.height - 2 * kCurve.margin)};
}

const nearest = (points, step) => points.reduce((best, point) => Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best);

function interval_path(points, {x, y}) {
  const known = points.filter(point => point.length > 2);
  if (known.length < 2) return "";
  return "M" + known.map(([step, , , high]) => `${x(step)},${y(high)}`).join("L") +
    "L" + known.toReversed().map(([step, , low]) => `${x(step)},${y(low)}`).join("L") + "Z";
}

function point_text(curve, [step, value, low, high]) {
  const interval = low === undefined ? "" : ` [${number(low)}, ${number(high)}]`;
  return `${curve.name} (${curve.unit}), step ${step}: ${value === null ? "-" : number(value)}${interval}`;
}

function build_curve(parent, curve, steps) {
  const points = curve.points.filter(([, value]) => value !== null);
  if (!points.length) return;
  const box = add(parent, "div", "", "curve"), last = points.at(-1), scales = scales_of(points, steps), {x, y} = scales;
  const head = add(box, "div");
  add(head, "span", curve.name + " ", "dim");
  const shown_value = add(head, "span", number(last[1]));
  const svg = draw(box, "svg", {width: kCurve.width, height: kCurve.height});
  draw(svg, "path", {d: interval_path(points, scales), class: "interval"});
  draw(svg, "path", {d: "M" + points.map(([step, value]) => `${x(step)},${y(value)}`).join("L")});
  const mark = draw(svg, "line", {y1: 0, y2: kCurve.height, class: "here"});
  mark.place = step => { for (const end of ["x1", "x2"]) mark.setAttribute(end, x(step)); };
  const dot = draw(svg, "circle", {r: 2, cx: x(last[0]), cy: y(last[1])}), title = draw(svg, "title", {}, point_text(curve, last));
  const point_at = event => nearest(points, steps[0] + (event.offsetX - kCurve.margin) / (kCurve.width - 2 * kCurve.margin) * (steps[1] - steps[0]));
  const show = point => {
    dot.setAttribute("cx", x(point[0]));
    dot.setAttribute("cy", y(point[1]));
    title.textContent = point_text(curve, point);
    shown_value.textContent = number(point[1]);
  };
  svg.addEventListener("mousemove", event => show(point_at(event)));
  svg.addEventListener("mouseleave", () => show(last));
  svg.addEventListener("click", event => go_to_step(point_at(event)[0]));
}

function build_curves() {
  ui.curves.replaceChildren();
  ui.curves.hidden = !data.curves.length;
  const all = data.curves.flatMap(curve => curve.points.map(([step]) => step));
  const steps = [Math.min(...all), Math.max(...all)];
  for (const curve of data.curves) build_curve(ui.curves, curve, steps);
  mark_step();
}

// Marks the step of the group that is shown.
function mark_step() {
  const group = state.groups[state.group];
  for (const mark of ui.curves.querySelectorAll(".here")) {
    mark.style.display = group ? "" : "none";
    if (group) mark.place(group.step);
  }
}

// The first group of the step, or of the nearest that the page has.
function go_to_step(step) {
  if (kServed && data.steps.includes(step) && !data.groups.some(group => group.step === step)) return load([step]).then(() => go_to_step(step));
  if (!state.groups.length) return;
  const best = nearest(state.groups.map((group, i) => [group.step, i]), step);
  go_to(best[1]);
}
