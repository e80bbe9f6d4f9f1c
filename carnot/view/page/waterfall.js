// Where the signal of one token comes from: from the score through every credit rule to the coefficient of its gradient.

// Rows of {name, value?, change?, detail?}: `value` is the signal behind the row in units of the advantage, `change` says
// what the row did to it.
function chain_of(member, k, i, method = kMethods.first) {
  const {leaf} = member, credit = credit_of(leaf, method);
  const n = member.begins[k] + i - member.tree.turns[member.turns[k]].sampled[0];
  const here = list => at(list, n, k);
  const rows = [{name: "score", detail: `${number(leaf.score)}, ${leaf.outcome}`}];
  const penalties = penalties_of(member);
  if (penalties) rows.push({name: "penalties", detail: number(penalties)});
  const now = {advantage: 0, weight: 1, clip_scale: 1, reward: credit.reward};
  for (const rule of credit.chain ?? []) rows.push(rule_row(rule, now, here));
  if (!credit.chain && here(credit.advantage) !== null) {
    now.advantage = here(credit.advantage);
    now.weight = here(credit.weight) ?? 1;
    rows.push({name: "advantage", value: now.advantage, change: signed(now.advantage), detail: "as the rows hold it"});
  }
  return [...rows, ...objective_rows(credit, now, here, n, data.methods[method]?.objective ?? {})];
}

const penalties_of = member => member.turns.reduce((sum, turn) => sum + (member.tree.turns[turn].penalty ?? 0), 0);
const signed = value => (value < 0 ? "\u2212" : "+") + number(Math.abs(value));
const times = value => "\u00d7 " + (value < 0 ? "\u2212" : "") + number(Math.abs(value));

// What a rule did to the credit in `now`, which becomes the credit behind it.
function rule_row(rule, now, here) {
  const parts = [], read = Object.entries(rule.read ?? {}).map(([name, list]) => [name, here(list)]).filter(([, value]) => value !== null);
  const before = {...now};
  for (const name of ["advantage", "weight", "clip_scale"]) if (rule[name] !== undefined) now[name] = here(rule[name]) ?? now[name];
  if (rule.reward !== undefined) now.reward = rule.reward;
  if (now.reward !== before.reward) parts.push(`reward ${number(before.reward)} \u2192 ${number(now.reward)}`);
  if (now.advantage !== before.advantage)
    parts.push(rule.kind === "modulator" && before.advantage ? times(now.advantage / before.advantage) : signed(now.advantage - before.advantage));
  if (now.weight !== before.weight) parts.push(times(now.weight / before.weight));
  if (now.clip_scale !== before.clip_scale) parts.push(`clip range ${times(now.clip_scale / before.clip_scale)}`);
  return {name: rule.rule.replaceAll("_", " "), value: now.advantage * now.weight, change: parts.join(", ") || "no change",
          detail: read.map(([name, value]) => `${name} ${number(value)}`).join(" \u00b7 ")};
}

// What the objective makes of a token's advantage and weight. Behind the share of the step, values stay in its units.
function objective_rows(credit, now, here, n, objective) {
  const rows = [], scaled = here(credit.scaled_advantage), share = here(credit.unit_share);
  let signal = now.advantage * now.weight;
  if (scaled !== null && now.advantage) {
    signal = scaled * now.weight;
    rows.push({name: "entropy scale", value: signal, change: times(scaled / now.advantage), detail: `${number(Number(objective.entropy_scale))} \u00d7 z of the token's entropy`});
  }
  const ratio = here(credit.ratio), gradient = here(credit.gradient), kl = here(credit.kl_gradient) ?? 0;
  if (ratio === null) return rows;
  const low = 1 - objective.clip_low * now.clip_scale, high = 1 + objective.clip_high * now.clip_scale;
  const range = Number.isFinite(low) ? `${objective.ratio}'s, clip range ${number(low)} to ${number(high)}, ` : "";
  const state = kClip[credit.clip?.[n] ?? "-"];
  if (gradient === null || !share) {
    rows.push({name: "ratio", change: number(ratio), detail: `${range}clip state ${state}`});
  } else {
    const policy = gradient - kl, slope = signal ? -policy / (signal * share) : 0;
    signal = -policy / share;
    rows.push({name: "ratio", value: signal, change: signed_ratio(ratio, slope, state), detail: `${range}clip state ${state}`});
    rows.push({name: "share of the step", change: `\u00f7 ${number(1 / share)}`, detail: objective.reduction?.replaceAll("_", " ") ?? ""});
    if (Number(objective.kl_coefficient) > 0)
      rows.push({name: "KL term", value: -gradient / share, change: exact(-kl),
                 detail: `${objective.kl_coefficient} \u00d7 ${objective.kl_estimator} to the reference`});
  }
  if (Number(objective.entropy_coefficient) > 0)
    rows.push({name: "entropy bonus", detail: `${objective.entropy_coefficient}; it moves the whole softmax and is left out here`});
  if (gradient !== null)
    rows.push({name: "\u2207 log \u03c0", value: share ? -gradient / share : undefined, change: exact(-gradient), detail: "coefficient of the token's gradient", last: true});
  return rows;
}

const exact = value => value === 0 ? "0" : (value < 0 ? "\u2212" : "+") + Math.abs(value).toExponential(4);
const signed_ratio = (ratio, slope, state) => state === "none" || Math.abs(slope - ratio) < 1e-3 ? times(ratio) : `${times(slope)} (ratio ${number(ratio)})`;

// How many of the group's trained tokens have a smaller signal, in percent; null if there are none.
function rank_of(group, value, method) {
  group.signals ??= {};
  group.signals[method] ??= members_of(group).flatMap(member => {
    const sizes = [];
    each_sampled(member, values => { if (values.gradient !== null) sizes.push(Math.abs(values.gradient)); }, method);
    return sizes;
  }).sort((a, b) => a - b);
  const sizes = group.signals[method];
  return sizes.length ? 100 * sizes.filter(size => size < Math.abs(value)).length / sizes.length : null;
}

function bar_of(cell, value, scale) {
  const track = add(cell, "span", "", "track"), bar = add(track, "span", "", value < 0 ? "negative" : "positive");
  const share = Math.min(1, Math.abs(value) / scale) * 50;
  bar.style.width = `${share}%`;
  bar.style.left = value < 0 ? `${50 - share}%` : "50%";
}

function build_chain(parent, member, k, i, method) {
  const rows = chain_of(member, k, i, method), table = add(parent, "table", "", "chain");
  const scale = Math.max(1e-12, ...rows.map(row => Math.abs(row.value ?? 0)));
  for (const row of rows) {
    const line = add(table, "tr", "", row.last ? "last" : ""), what = add(line, "td");
    add(what, "span", row.name, "name");
    if (row.detail) add(what, "div", row.detail, "dim");
    const cell = add(line, "td", "", "bars");
    if (row.value !== undefined) bar_of(cell, row.value, scale);
    add(line, "td", row.change ?? "", "change").title = row.value === undefined ? "" : `signal ${number(row.value)}`;
  }
}

// The text around a token, with the token marked.
function build_context(parent, member, k, i) {
  const turn = member.tree.turns[member.turns[k]], line = add(parent, "div", "", "context");
  const text = (from, to) => shown(turn.tokens.slice(from, to).map((_, n) => token_text(turn, from + n)).join("")).replaceAll("\n", "\u21b5");
  line.append(text(Math.max(0, i - 12), i));
  add(line, "b", shown(token_text(turn, i)).replaceAll("\n", "\u21b5"));
  line.append(text(i + 1, Math.min(turn.tokens.length, i + 10)));
}

function open_token(member, k, i) {
  state.token = {member, k, i};
  const fold = folds_of(state.sibling)[k];
  if (fold && !fold.open) { fold.fill(); fold.open = true; }
  show_waterfall();
  write_link();
}

function close_token() {
  state.token = null;
  show_waterfall();
  write_link();
}

// What `moved` is measured over.
function mover_of(group, values) {
  const checkpoint = data.after[group.step];
  if (values.logp_after === null) return "The step's earlier updates";
  return checkpoint === group.step ? "The step" : `The steps ${group.step} to ${checkpoint}`;
}

function show_waterfall() {
  ui.main.querySelector("i.picked")?.classList.remove("picked");
  ui.side.replaceChildren();
  ui.side.hidden = !state.token && kMethods.second === null;
  if (ui.side.hidden) return;
  if (!state.token) return build_differences();
  const {member, k, i} = state.token, values = values_at(member, k, i), group = state.groups[state.group];
  const head = add(ui.side, "div", "", "sidehead");
  add(head, "b", `${shown(member.leaf.id)} \u00b7 turn ${k} \u00b7 position ${i}`);
  const close = add(head, "button", "\u2715");
  close.title = "close (Esc)";
  close.addEventListener("click", close_token);
  build_context(ui.side, member, k, i);
  const chains = add(ui.side, "div", "", "chains");
  for (const method of [kMethods.first, kMethods.second].filter(method => method !== null)) {
    const box = add(chains, "div");
    if (data.methods.length > 1) add(box, "h3", data.methods[method].name);
    build_chain(box, member, k, i, method);
    if (credit_of(member.leaf, method).dropped) add(box, "p", "Its filter drops this group.", "dim");
  }
  const rank = values.gradient === null ? null : rank_of(group, values.gradient, kMethods.first);
  if (rank !== null) add(ui.side, "p", `Larger than the signal of ${rank.toFixed(0)} % of the group's trained tokens.`, "dim");
  if (values.moved) add(ui.side, "p", `${mover_of(group, values)} moved its log-probability by ${signed(values.moved)} nats` +
    (values.gradient ? `, ${values.moved * -values.gradient > 0 ? "in the direction of" : "against"} its signal.` : "."), "dim");
  if (!credit_of(member.leaf).chain) add(ui.side, "p", counts(member.leaf) ? "The rules of the method are not known here." : "Excluded: this trajectory gets no credit.", "dim");
  const signals = kSignals.filter(name => values[name] !== null).map(name => `${name} ${number(values[name])}`);
  add(ui.side, "p", [`id ${values.id}`, ...signals].join(" \u00b7 "), "dim");
  token_element(state.token)?.classList.add("picked");
}

// --- moving from token to token

const token_element = ({member, k, i}) => [...ui.main.querySelectorAll("i")].find(({at}) => at.member === member && at.k === k && at.i === i);

// The sampled token of a turn with the largest signal, or the first.
function main_token(member, k) {
  const [begin, end] = member.tree.turns[member.turns[k]].sampled;
  let best = begin;
  const size = i => Math.abs(values_at(member, k, i).gradient ?? values_at(member, k, i).advantage ?? 0);
  for (let i = begin; i < end; ++i) if (size(i) > size(best)) best = i;
  return end > begin ? best : null;
}

// The next sampled token, or the one before; turns without any are skipped.
function move_token(by) {
  if (!state.token) return;
  const {member} = state.token;
  let {k, i} = state.token;
  for (i += by; k >= 0 && k < member.turns.length;) {
    const [begin, end] = member.tree.turns[member.turns[k]].sampled;
    if (i >= begin && i < end) return choose_turn(k), open_token(member, k, i);
    k += by;
    if (k >= 0 && k < member.turns.length) i = by > 0 ? member.tree.turns[member.turns[k]].sampled[0] : member.tree.turns[member.turns[k]].sampled[1] - 1;
  }
}

function choose_turn(turn, scroll = true) {
  const member = state.groups[state.group]?.members[state.sibling];
  if (!member) return;
  state.turn = Math.min(Math.max(turn, 0), member.turns.length - 1);
  mark_turn(scroll);
}

const folds_of = sibling => [...state.groups[state.group]?.cards[sibling]?.querySelectorAll("details") ?? []];

function mark_turn(scroll) {
  ui.main.querySelector("details.chosen")?.classList.remove("chosen");
  const fold = folds_of(state.sibling)[state.turn];
  fold?.classList.add("chosen");
  if (scroll) fold?.scrollIntoView({block: "nearest", inline: "nearest"});
}

function open_turn() {
  const member = state.groups[state.group]?.members[state.sibling], token = member && main_token(member, state.turn);
  if (token !== null && token !== undefined) open_token(member, state.turn, token);
}
