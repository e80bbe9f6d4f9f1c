// The signal's budget: which share of the absolute signal goes where, step by step of the page.

const kBands = [0.05, 0.3, 1, Infinity];  // nats
const kTurnsListed = 5;

// How the tokens are divided: names of the parts, and the part of a token.
const kDivisions = [
  {name: "role", parts: ["action", "thinking", "other"], of: (member, values, kind) => kind === 3 ? 0 : kind === 2 ? 1 : 2},
  {name: "turn", parts: ["0", "1", "2", "3", `${kTurnsListed - 1}+`], of: (member, values) => Math.min(values.turn, kTurnsListed - 1)},
  {name: "entropy", parts: ["< 0.05", "< 0.3", "< 1", "\u2265 1 nats"],
   of: (member, values) => values.entropy === null ? -1 : kBands.findIndex(band => values.entropy < band)},
  {name: "outcome", parts: ["success", "no success"], of: member => member.leaf.success ? 0 : 1},
  {name: "moved", parts: ["as pushed", "against it"], of: (member, values) => !values.moved ? -1 : values.moved * push_of(values) > 0 ? 0 : 1},
];

// Where the step pushed a token's log-probability, and how hard: minus its gradient, or its credit where that is not known.
function push_of(values) {
  if (values.gradient !== null) return -values.gradient;
  return values.advantage === null ? 0 : values.advantage * (values.weight ?? 1);
}

const signal_size = values => Math.abs(push_of(values));

function kind_at(turn, i) {
  return (turn.spans ?? []).find(([, first, last]) => i >= first && i < last)?.[0] ?? 1;
}

const no_sums = () => kDivisions.map(division => division.parts.map(() => 0));

// Adds the group's sums of `size` in each part of each division.
function add_budget(sums, group, size = signal_size) {
  for (const member of members_of(group)) {
    if (!counts(member.leaf)) continue;
    each_sampled(member, values => {
      const share = size(values), kind = kind_at(member.tree.turns[member.turns[values.turn]], values.position);
      if (share) kDivisions.forEach((division, d) => {
        const part = division.of(member, values, kind);
        if (part >= 0) sums[d][part] += share;
      });
    });
  }
}

const percent = value => `${(100 * value).toFixed(0)} %`;

// Shares of one division: a bar for each step, and the parts' names with their shares over all of them.
function build_division(parent, division, by_step, whole) {
  if (!whole.some(value => value > 0)) return;
  const box = add(parent, "div", "", "division"), total = whole.reduce((sum, value) => sum + value, 0);
  add(box, "span", division.name, "name");
  const bars = add(box, "div", "", "stack");
  for (const [step, sums] of by_step) {
    const all = sums.reduce((sum, value) => sum + value, 0), line = add(bars, "div", "", "stackline");
    if (!all) { line.title = `step ${step}: no signal`; continue; }
    line.title = `step ${step}: ` + division.parts.map((part, p) => `${part} ${percent(sums[p] / all)}`).join(", ");
    sums.forEach((value, p) => { add(line, "span", "", `part part${p}`).style.width = `${100 * value / all}%`; });
  }
  const legend = add(box, "div", "", "parts");
  legend.title = division.parts.map((part, p) => `${part} ${percent(whole[p] / total)}`).join(", ");
  division.parts.forEach((part, p) => {
    if (!whole[p]) return;
    add(legend, "span", "", `swatch part${p}`);
    legend.append(`${part} ${percent(whole[p] / total)}  `);
  });
}

function build_budget() {
  ui.stop_budget?.();
  const by_step = new Map();
  ui.stop_budget = in_slices(data.groups, group => {
    if (!by_step.has(group.step)) by_step.set(group.step, no_sums());
    add_budget(by_step.get(group.step), group);
  }, () => draw_budget([...by_step].sort(([a], [b]) => a - b)));
}

function draw_budget(by_step) {
  ui.budget.replaceChildren();
  const whole = kDivisions.map((division, d) => division.parts.map((_, p) => by_step.reduce((sum, [, sums]) => sum + sums[d][p], 0)));
  ui.budget.hidden = !whole[0].some(value => value > 0);
  if (ui.budget.hidden) return;
  add(ui.budget, "span", "signal by", "dim").title = "Share of the absolute gradient (or of advantage times weight) of all tokens, a bar for each step of the page, the first on top";
  kDivisions.forEach((division, d) => build_division(ui.budget, division, by_step.map(([step, sums]) => [step, sums[d]]), whole[d]));
}
