// Draws the report that this page holds as JSON (view/chart/page.h): text, figures by uPlot, tables.
"use strict";

const kColours = ["#1f5fa8", "#d1495b", "#2a8f5b", "#e08e1b", "#7a4fb5", "#8a5a44", "#c94f9c", "#5f6b76", "#9a9a1f",
                  "#1f9fb5"];
const kGrey = "#8a929c";
const kMostBands = 6;  // more of them hide each other
const kRowsShown = 60;

const report = JSON.parse(document.getElementById("report").textContent);

function add(parent, tag, text = "", className = "") {
  const element = parent.appendChild(document.createElement(tag));
  element.textContent = text;
  element.className = className;
  return element;
}

// Four significant digits, as in the terminal.
function number(value) {
  if (typeof value !== "number") return value ?? "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toFixed(size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size))))));
}

const text_on = axis => value => value === null ? "-" : axis.percent ? number(100 * value) + " %" : number(value);
const cut = (value, axis) => Math.min(Math.max(value, axis.low ?? -Infinity), axis.high ?? Infinity);
const faded = (colour, opacity) => colour + Math.round(255 * opacity).toString(16).padStart(2, "0");

// [{name, points: [{x, y, low, high}]}]: one series per column of y and combination of the series' columns.
function series_of(figure) {
  const all = new Map();
  for (const row of report.tables[figure.table]) {
    if (Object.entries(figure.rows ?? {}).some(([column, cells]) => !cells.includes(row[column]))) continue;
    for (const column of figure.y) {
      const parts = figure.series.map(split => figure.series.length > 1 && typeof row[split] === "number"
                                               ? `${split} ${number(row[split])}` : number(row[split]));
      if (figure.y.length > 1 || !parts.length) parts.push(column);
      const name = parts.join(", "), y = row[column], half = row[figure.spread];
      const [low, high] = figure.spread ? [y - half, y + half] : [row[figure.low] ?? null, row[figure.high] ?? null];
      const has_band = low !== null && high !== null;
      if (!all.has(name)) all.set(name, []);
      all.get(name).push({x: row[figure.x], y: y ?? null, low: has_band ? cut(low, figure.y_axis) : null,
                          high: has_band ? cut(high, figure.y_axis) : null});
    }
  }
  return [...all].map(([name, points], i) => ({name, points, colour: kColours[i % kColours.length],
                                              dash: [[], [8, 4], [3, 3]][Math.floor(i / kColours.length) % 3]}));
}

// Gives every point its place among the values of x; categories are counted. Returns those values.
function place(figure, series) {
  const points = series.flatMap(one => one.points);
  const numeric = points.every(point => typeof point.x === "number");
  if (numeric) points.sort((a, b) => a.x - b.x);
  if (figure.draw === "points") return points.map((point, i) => (point.at = i, point.x));
  const values = [...new Set(points.map(point => point.x))];
  const places = new Map(values.map((value, i) => [value, i]));
  for (const point of points) point.at = places.get(point.x);
  return values;
}

// Smallest and largest of what is shown between `from` and `to`, inside the axis' own ends.
function extent(figure, series, from, to, with_bands) {
  let [low, high] = [Infinity, -Infinity];
  const take = value => { if (value != null) [low, high] = [Math.min(low, value), Math.max(high, value)]; };
  for (const {points} of series)
    for (const point of points) {
      if (point.position < from || point.position > to) continue;
      take(point.y);
      if (with_bands) { take(point.low); take(point.high); }
      if (with_bands) point.dots?.forEach(take);
    }
  if (figure.draw === "bars" && low <= high) take(0);
  if (low <= high && figure.mark !== undefined) take(figure.mark);
  if (low > high) [low, high] = [0, 1];
  const margin = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  if (figure.draw === "intervals") return [low - margin, high + margin];  // whole dots, at the axis' ends too
  const below = figure.draw === "bars" && low === 0 ? 0 : low - margin;
  return [cut(below, figure.y_axis), cut(high + margin, figure.y_axis)];
}

// Bands, bars and intervals: what uPlot does not draw itself. Called below its lines and dots.
function draw_shapes(u, figure, series, with_bands) {
  const turned = figure.draw === "intervals", shown = series.filter((_, s) => u.series[s + 1].show);
  const pixel = (x, y) => {
    const at = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
    return turned ? at.reverse() : at;
  };
  const {ctx} = u, ratio = devicePixelRatio;
  const line = (from, to, colour, width) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width * ratio;
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  };
  const dot = (at, radius, colour) => {
    ctx.fillStyle = colour;
    ctx.beginPath();
    ctx.arc(...at, radius * ratio, 0, 2 * Math.PI);
    ctx.fill();
  };
  const band = (points, colour) => {
    ctx.fillStyle = faded(colour, 0.15);
    ctx.beginPath();
    points.forEach(point => ctx.lineTo(...pixel(point.x, point.high)));
    points.toReversed().forEach(point => ctx.lineTo(...pixel(point.x, point.low)));
    ctx.fill();
  };
  const bar = (point, n, colour) => {
    const width = 0.8 / shown.length, left = point.at - 0.4 + n * width;
    const [x0, y0] = pixel(left, 0), [x1, y1] = pixel(left + 0.92 * width, point.y);
    ctx.fillStyle = faded(colour, 0.85);
    ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
    const middle = left + 0.46 * width;
    if (point.low !== null) line(pixel(middle, point.low), pixel(middle, point.high), "#222", 1.4);
  };
  const interval = point => {
    const {at, y, low, high} = point, known = low !== null;
    const tells = known && (figure.mark === undefined || low > figure.mark || high < figure.mark) && low < high;
    const colour = tells || figure.mark === undefined ? kColours[0] : kGrey;
    point.dots.forEach(value => dot(pixel(at, value), 2.2, faded(colour, 0.45)));
    if (known) line(pixel(at, low), pixel(at, high), colour, 2);
    dot(pixel(at, y), 4.5, colour);
  };
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  if (turned && figure.mark !== undefined)
    line(pixel(u.scales.x.min, figure.mark), pixel(u.scales.x.max, figure.mark), "#444", 1);
  shown.forEach(({points, colour}, n) => {
    const drawn = points.filter(point => point.y !== null);
    if (figure.draw === "bars") drawn.forEach(point => bar(point, n, colour));
    if (turned) drawn.forEach(interval);
    if (figure.draw === "lines" && with_bands) band(drawn.filter(point => point.low !== null), colour);
  });
  ctx.restore();
}

// One plot below `parent`. `small`: without legend and titles, over the range of y in `small`.
function plot(parent, figure, series, small = null) {
  const values = place(figure, series);
  const counted = figure.draw === "bars" || figure.draw === "intervals", turned = figure.draw === "intervals";
  const with_bands = series.length <= kMostBands || counted, on_y = text_on(figure.y_axis);
  for (const {points} of series)
    for (const point of points) point.position = counted ? point.at : point.x;
  const single = figure.dots ? report.tables[figure.dots] : [];
  if (turned)
    for (const point of series.flatMap(one => one.points))
      point.dots = single.filter(row => row[figure.x] === point.x).map(row => row[figure.y[0]]);
  const data = [counted ? values.map((_, i) => i) : values, ...series.map(({points}) => {
    const column = Array(values.length).fill(null);
    for (const point of points) column[point.at] = point.y;
    return column;
  })];
  const legend = ({name, points}) => {
    const bands = new Map(points.map(point => [point.at, point]));
    return (u, value, s, at) => {
      const {low, high} = bands.get(at) ?? {low: null};
      return value == null ? "-" : on_y(value) + (low === null ? "" : ` [${on_y(low)}, ${on_y(high)}]`);
    };
  };
  const category = at => number(values[at]);
  const longest = Math.max(0, ...values.map(value => String(number(value)).length));
  const crowded = counted && !turned && longest * values.length * 7 > parent.clientWidth - 60;
  const label = (axis, column) => small ? {} : {label: axis.label || column, labelSize: 20};
  const x_axis = {...label(figure.x_axis, figure.x), size: 30, values: (u, at) => at.map(counted ? category : text_on(figure.x_axis))};
  const y_axis = {...label(figure.y_axis, figure.y[0]), values: (u, at) => at.map(on_y),
                  size: (u, texts) => Math.max(34, 16 + 7 * Math.max(...(texts ?? []).map(text => text.length)))};
  if (counted) x_axis.splits = (u, _, from, to) => data[0].filter(at => at >= from && at <= to);
  if (values.every(Number.isInteger)) x_axis.incrs = [0, 1, 2, 3, 4, 5, 6].flatMap(power => [1, 2, 5].map(k => k * 10 ** power));
  if (turned) Object.assign(x_axis, {side: 3, size: 7 * longest + 20, label: undefined, grid: {show: false}});
  if (turned) Object.assign(y_axis, {side: 2, size: 30});
  if (crowded) Object.assign(x_axis, {rotate: -30, size: Math.min(140, 4 * longest + 30)});
  let seen = [-Infinity, Infinity];  // of x; u.scales still has what was before when y asks
  const range_x = (u, from, to) => {
    if (from === null) return [0, 1];
    if (counted) [from, to] = [Math.max(from, 0), Math.min(to, values.length - 1)];  // uPlot asks for 0 to 100 of one value
    seen = [from, to];
    const margin = counted ? 0.5 : (figure.draw === "points" ? 0.02 : 0) * (to - from) || (from === to ? 1 : 0);
    return [from - margin, to + margin];
  };
  const options = {
    width: parent.clientWidth,
    height: small ? 190 : turned ? 90 + 26 * values.length : 380,
    scales: {
      x: {time: false, range: range_x, ori: turned ? 1 : 0, dir: turned ? -1 : 1},
      y: {ori: turned ? 0 : 1,
          range: u => small ?? extent(figure, series.filter((_, s) => u.series[s + 1].show), ...seen, with_bands)},
    },
    axes: [x_axis, y_axis],
    cursor: {drag: {x: true, y: false}, focus: {prox: series.length > 2 ? 30 : -1},
             points: {show: !counted}},
    focus: {alpha: 0.25},
    legend: {show: !small},
    hooks: {drawAxes: [u => draw_shapes(u, figure, series, with_bands)]},
    series: [
      {label: figure.x, value: (u, value, s, at) => at == null ? "-" : counted ? category(at) : text_on(figure.x_axis)(value)},
      ...series.map(one => ({
        label: one.name, stroke: one.colour, dash: one.dash, spanGaps: true, value: legend(one),
        fill: figure.draw === "lines" ? undefined : one.colour,
        width: one.name === figure.base ? 3.5 : figure.draw === "lines" ? 1.8 : 0,
        paths: figure.draw === "lines" ? undefined : () => null,
        points: {show: figure.draw === "points" || (figure.draw === "lines" && one.points.length === 1) ? true
                       : counted ? false : undefined,
                 size: 6, fill: faded(one.colour, 0.45), width: 0},
      })),
    ],
  };
  const u = new uPlot(options, data, parent);
  const fit = () => parent.clientWidth !== u.width && u.setSize({width: parent.clientWidth, height: options.height});
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(parent);
}

// A small plot for each series, over the base in grey; all with one range of y.
function small_plots(parent, figure, series) {
  const base = series.find(one => one.name === figure.base);
  if (!base || series.length < 3) return;
  const gallery = add(parent, "div", "", "gallery");
  const range = extent(figure, series, -Infinity, Infinity, false);
  for (const one of series.filter(other => other !== base)) {
    const box = add(gallery, "div");
    add(box, "h4", one.name).title = one.name;
    plot(add(box, "div"), {...figure, base: ""}, [{...base, colour: kGrey, dash: []}, {...one, colour: kColours[0], dash: []}], range);
  }
}

function add_figure(parent, figure) {
  const box = add(parent, "figure"), series = series_of(figure);
  add(box, "h3", figure.title);
  if (!series.some(one => one.points.some(point => point.y !== null))) return add(box, "p", "no data", "hint");
  plot(add(box, "div"), figure, series);
  if (figure.caption) add(box, "figcaption", figure.caption);
  small_plots(box, figure, series);
}

function add_table(parent, rows) {
  const table = add(add(parent, "div", "", "wide"), "table"), columns = Object.keys(rows[0] ?? {});
  const head = add(add(table, "thead"), "tr"), body = add(table, "tbody");
  const kind = value => typeof value !== "string" ? "" : value.length > 32 ? "long word" : "word";
  columns.forEach(column => add(head, "th", column, kind(rows[0][column])));
  for (const row of rows) {
    const line = add(body, "tr");
    columns.forEach(column => add(line, "td", number(row[column]), kind(row[column])));
  }
}

function add_list(parent, lines) {
  const list = add(parent, "ul");
  lines.forEach(line => add(list, "li", line));
}

function add_report(parent) {
  document.title = report.title ?? "Carnot";
  add(parent, "h1", document.title);
  if (report.introduction) add(parent, "p", report.introduction);
  if (report.findings) add_table(parent, report.findings);
  if (report.notes?.length) add_list(parent, report.notes);
  for (const {title, lines} of report.sections ?? []) {
    add(parent, "h2", title);
    add_list(parent, lines);
  }
  if (report.figures?.length) {
    add(parent, "h2", "Figures");
    add(parent, "p", "Drag to zoom, double click to see everything again, click on a name in a legend to hide it.", "hint");
    report.figures.forEach(figure => add_figure(parent, figure));
  }
  add(parent, "h2", "Tables");
  for (const [name, rows] of Object.entries(report.tables ?? {})) {
    const details = add(parent, "details");
    details.open = rows.length <= kRowsShown;
    add(details, "summary", `${name} (${rows.length} rows)`);
    add_table(details, rows);
  }
  const options = Object.entries(report.options ?? {});
  if (options.length) {
    add(parent, "h2", "Options");
    add_list(parent, options.map(([key, value]) => `${key}: ${value}`));
  }
}

add_report(document.body);
