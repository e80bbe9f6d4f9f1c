// Shows what trajectories.js computes. Texts of models only ever become text nodes.

function add(parent, tag, text = "", className = "") {
  const element = parent.appendChild(document.createElement(tag));
  if (text !== "") element.textContent = text;
  if (className) element.className = className;
  return element;
}

const state = {groups: [], group: 0, sibling: 0, mode: 0, single: false};
const ui = {};

// --- head

function build_head() {
  const bar = add(document.body, "header"), head = add(bar, "div", "", "controls"), buttons = add(bar, "div", "", "buttons");
  document.title = data.title + " - Carnot";
  add(head, "h1", shown(data.title));
  const facts = add(head, "span", data.facts.map(([name, value]) => /^\d+$/.test(value) ? `${name} ${value}` : shown(value)).join(" \u00b7 "),
                    "dim");
  facts.title = data.facts.map(([name, value]) => `${name} ${shown(value)}`).join("\n");
  const choice = (label, options) => {
    const select = add(add(head, "label", label + " "), "select");
    for (const [value, text] of options) add(select, "option", text).value = value;
    select.addEventListener("change", () => { select.blur(); filter(); });
    return select;
  };
  const input = (label, className, type) => {
    const field = add(add(head, "label", label + " "), "input", "", className);
    field.type = type;
    if (type === "number") field.step = "any";
    field.addEventListener("input", filter);
    return field;
  };
  const leaves = data.groups.flatMap(group => members_of(group).map(member => member.leaf));
  const words = values => [["", "any"], ...[...new Set(values)].map(value => [String(value), String(value)])];
  ui.step = choice("step", words(data.groups.map(group => group.step)));
  ui.outcome = choice("outcome", [...words(leaves.map(leaf => leaf.outcome)), ["+", "success"], ["-", "no success"]]);
  ui.least = input("score from", "number", "number");
  ui.most = input("to", "number", "number");
  ui.search = input("text", "search", "search");
  ui.order = choice("sort by", Object.keys(kOrders).map(name => [name, name]));
  ui.order.addEventListener("change", () => go_to(0));
  ui.mode = add(add(head, "label", "colour "), "select");
  kModes.forEach((mode, i) => add(ui.mode, "option", mode.name).value = i);
  ui.mode.addEventListener("change", () => { ui.mode.blur(); set_mode(Number(ui.mode.value)); });
  const button = (text, title, act) => {
    const element = add(buttons, "button", text);
    element.title = title;
    element.addEventListener("click", () => { element.blur(); act(); });
  };
  button("\u25d0", "light or dark (t)", turn_theme);
  button("?", "keys (?)", show_keys);
  for (const note of data.notes) add(bar, "div", shown(note), "note");
}

function turn_theme() { document.documentElement.classList.toggle("dark"); }

function show_keys() {
  if (!ui.keys) {
    ui.keys = add(document.body, "dialog");
    add(ui.keys, "h2", "Keys");
    const table = add(ui.keys, "table");
    for (const [keys, what] of [[["j", "k"], "next and previous group"], [["\u2192", "\u2190"], "next and previous sibling"],
                                [["\u2193", "\u2191"], "scroll"], [["x"], "fold or unfold the sibling's turns"],
                                [["s"], "this sibling alone, or all side by side"], [["c", "C"], "next and previous colour"],
                                [["1", "2", "3", "4"], "entropy, advantage, weight, clip state"], [["/"], "search in the texts"],
                                [["t"], "light or dark"], [["?"], "these keys"], [["Esc"], "close"]]) {
      const row = add(table, "tr"), cell = add(row, "td");
      for (const key of keys) { add(cell, "kbd", key); cell.append(" "); }
      add(row, "td", what);
    }
    add(ui.keys, "p", "Colours are scaled by group: the 98th percentile of the sampled tokens gets the full colour. "
        + "Only sampled tokens are coloured; actions are underlined.", "dim");
  }
  ui.keys.open ? ui.keys.close() : ui.keys.showModal();
}

// --- which groups

function fits(member, texts) {
  const leaf = member.leaf, outcome = ui.outcome.value;
  if (outcome === "+" ? !leaf.success : outcome === "-" ? leaf.success : outcome && leaf.outcome !== outcome) return false;
  if (ui.least.value !== "" && !(leaf.score >= Number(ui.least.value))) return false;
  if (ui.most.value !== "" && !(leaf.score <= Number(ui.most.value))) return false;
  return !texts || member.turns.some(turn => text_of(member.tree.turns[turn]).toLowerCase().includes(texts));
}

// The order of the list of groups; equal ones stay as they are.
const kOrders = {
  step: () => 0,
  spread: (a, b) => b.rewards.spread - a.rewards.spread,
  "lowest mean": (a, b) => a.rewards.mean - b.rewards.mean,
  "highest mean": (a, b) => b.rewards.mean - a.rewards.mean,
};

function filter() {
  const kept = state.groups[state.group], texts = ui.search.value.toLowerCase();
  state.groups = data.groups.filter(group => {
    if (ui.step.value && String(group.step) !== ui.step.value) return false;
    group.rewards ??= rewards_of(group);
    for (const member of members_of(group)) member.fits = fits(member, texts);
    return group.members.some(member => member.fits);
  }).sort(kOrders[ui.order.value]);
  state.group = Math.max(0, state.groups.indexOf(kept));
  build_list();
  show_group();
}

function dot_of(parent, member) {
  const {leaf} = member;
  const dot = add(parent, "span", "", "dot" + (leaf.success ? " success" : "") + (counts(leaf) ? "" : " out") + (member.fits ? "" : " hidden"));
  dot.title = `${leaf.id}: ${leaf.outcome}, score ${number(leaf.score)}`;
}

function build_list() {
  ui.list.replaceChildren();
  state.groups.forEach((group, i) => {
    const link = add(ui.list, "a");
    add(link, "span", `step ${group.step} \u00b7 ${shown(group.uid)}`, "name");
    const line = add(link, "span", "", "line"), dots = add(line, "span", "", "dots");
    for (const member of members_of(group)) dot_of(dots, member);
    const {mean, spread} = group.rewards, signal = spread > 1e-9;
    const score = add(line, "span", short(mean) + (signal ? ` \u00b1 ${short(spread)}` : ""), signal ? "signal" : "dim");
    score.title = `mean reward ${number(mean)}, penalties included, ` +
      (signal ? `standard deviation ${number(spread)}: a signal` : "the same for all: no signal");
    link.addEventListener("click", () => go_to(i));
  });
  if (!state.groups.length) add(ui.list, "p", "nothing fits", "dim");
}

function go_to(group) {
  if (!state.groups.length) return;
  state.group = Math.min(Math.max(group, 0), state.groups.length - 1);
  state.sibling = 0;
  show_group();
}

// --- a group

function paint(element, values) {
  const mode = kModes[state.mode], value = mode.of(values);
  element.style.background = colour_of(mode, value, state.scale);
  element.classList.toggle("untrained", mode.scale === "words" && value === "-");
}

// The text of a turn: what was not sampled in stretches, what was sampled token by token.
function fill_turn(box, member, k) {
  const turn = member.tree.turns[member.turns[k]], [begin, end] = turn.sampled;
  for (const [kind, first, last] of turn.spans ?? [[1, 0, turn.tokens.length]]) {
    for (let i = first; i < last;) {
      if (i >= begin && i < end) {
        const token = add(box, "i", shown(token_text(turn, i)).replace("\n", "\u21b5\n"), kKinds[kind]);
        token.at = {member, k, i};
        paint(token, values_at(member, k, i));
        ++i;
        continue;
      }
      const stop = i < begin ? Math.min(last, begin) : last;
      let text = "";
      for (; i < stop; ++i) text += token_text(turn, i);
      add(box, "span", shown(text), kKinds[kind]);
    }
  }
}

function summary_of(member, k, digits) {
  const turn = member.tree.turns[member.turns[k]], leaf = member.leaf, parts = [`turn ${k}`];
  const own = turn.sampled[1] - turn.sampled[0];
  const signal = name => mean(Array.from({length: own}, (_, i) => at(turn[name], i)).filter(value => value !== null));
  const credit = name => mean(Array.from({length: own}, (_, i) => at(leaf[name], member.begins[k] + i)).filter(value => value !== null));
  if (leaf.branch_turn > k) parts.push(`shared with ${shown(member.tree.leaves[leaf.parent].id)}`);
  if (credit("advantage") !== null) parts.push(`A ${digits(credit("advantage"))}`);
  if (signal("entropy") !== null) parts.push(`H ${digits(signal("entropy"))}`);
  parts.push(`${own} sampled`);
  if (turn.tool) parts.push(shown(turn.tool) + (turn.status ? ` ${shown(turn.status)}` : ""));
  if (turn.reward) parts.push(`reward ${number(turn.reward)}`);
  if (turn.penalty) parts.push(`penalty ${number(turn.penalty)}`);
  if (turn.valid_action === false) parts.push("not valid");
  if (turn.info_gain !== undefined) parts.push(`gain ${number(turn.info_gain)}`);
  return parts.join(" \u00b7 ");
}

function build_member(parent, member, number_of, open) {
  const card = add(parent, "article"), head = add(card, "div", "", "head"), {leaf} = member;
  add(head, "b", shown(leaf.id));
  add(head, "span", leaf.outcome + (leaf.success ? ", success" : ""), leaf.success ? "good" : counts(leaf) ? "" : "bad");
  const penalties = member.turns.reduce((sum, turn) => sum + (member.tree.turns[turn].penalty ?? 0), 0);
  const facts = [`score ${number(leaf.score)}`, `${member.turns.length} turns`, `${member.tokens} tokens`];
  if (penalties) facts.splice(1, 0, `penalties ${number(penalties)}`);
  if (leaf.branch_turn !== undefined) facts.push(`left ${shown(member.tree.leaves[leaf.parent].id)} after turn ${leaf.branch_turn - 1}`);
  if (leaf.dropped) facts.push("dropped by the filter");
  if (leaf.answer !== undefined) facts.push(`answer ${shown(leaf.answer)}`);
  for (const [name, value] of Object.entries(leaf.measures ?? {})) facts.push(`${shown(name)} ${number(value)}`);
  add(head, "div", facts.join(" \u00b7 "), "dim");
  card.addEventListener("click", () => choose_sibling(number_of, false));
  member.turns.forEach((_, k) => {
    const fold = add(card, "details");
    add(fold, "summary", summary_of(member, k, short)).title = summary_of(member, k, number);
    const box = add(fold, "div", "", "text");
    fold.fill = () => { if (!box.firstChild) fill_turn(box, member, k); };
    fold.addEventListener("toggle", () => { if (fold.open) fold.fill(); });
    // What siblings share is folded, and so is everything where there is too much of it.
    if (open && !(leaf.branch_turn > k)) { fold.fill(); fold.open = true; }
  });
  return card;
}

function show_group() {
  const group = state.groups[state.group];
  ui.main.replaceChildren();
  [...ui.list.children].forEach((link, i) => link.classList.toggle("chosen", i === state.group));
  if (!group) return;
  ui.list.children[state.group]?.scrollIntoView({block: "nearest"});
  add(ui.main, "h2", `step ${group.step} \u00b7 ${shown(group.uid)}`);
  const facts = Object.entries(group.info ?? {}).map(([name, value]) => `${shown(name)} ${shown(value)}`);
  if (group.truth) facts.unshift("right: " + group.truth.map(shown).join(" | "));
  facts.unshift(`${group.members.length} trajectories, ${group.members.filter(member => member.leaf.success).length} with success`);
  add(ui.main, "div", facts.join(" \u00b7 "), "dim");
  state.scale = scale_of(group, kModes[state.mode]);
  const box = add(ui.main, "div", "", "siblings" + (state.single ? " single" : ""));
  const many = group.members.reduce((sum, member) => sum + member.tokens, 0) > kMostOpen;
  group.cards = group.members.map((member, i) => {
    if (state.single && i !== state.sibling) return null;
    return build_member(box, member, i, !many || i === state.sibling);
  });
  mark_sibling();
  build_legend();
}

function mark_sibling() {
  const {cards} = state.groups[state.group];
  cards.forEach((card, i) => card?.classList.toggle("chosen", i === state.sibling));
}

function choose_sibling(sibling, scroll = true) {
  const group = state.groups[state.group];
  if (!group || sibling < 0 || sibling >= group.members.length) return;
  state.sibling = sibling;
  if (state.single) return show_group();
  mark_sibling();
  if (scroll) group.cards[sibling].scrollIntoView({block: "nearest", inline: "nearest"});
}

function fold_sibling() {
  const folds = [...(state.groups[state.group]?.cards[state.sibling]?.querySelectorAll("details") ?? [])];
  const open = !folds.some(fold => fold.open);
  for (const fold of folds) { if (open) fold.fill(); fold.open = open; }
}

// --- colours

function set_mode(mode) {
  state.mode = (mode + kModes.length) % kModes.length;
  ui.mode.value = state.mode;
  const group = state.groups[state.group];
  if (!group) return;
  state.scale = scale_of(group, kModes[state.mode]);
  for (const token of ui.main.querySelectorAll("i")) paint(token, values_at(token.at.member, token.at.k, token.at.i));
  build_legend();
}

function build_legend() {
  const mode = kModes[state.mode], box = ui.legend;
  box.replaceChildren();
  add(box, "span", mode.name);
  if (mode.scale === "none") return;
  if (mode.scale === "words") {
    const found = new Set();
    for (const member of state.groups[state.group].members) each_sampled(member, values => values.clip && found.add(values.clip));
    if (!found.size) add(box, "span", "is not known here", "dim");
    for (const letter of found) {
      const key = add(box, "span", kClip[letter], "key" + (letter === "-" ? " untrained" : ""));
      key.style.background = kClipColours[letter] ?? "";
    }
    return;
  }
  if (!state.scale) return add(box, "span", "is not known here", "dim");
  const low = mode.scale === "both" ? -state.scale : 0;
  const end = value => number((mode.centre ?? 0) + (mode.sign ?? 1) * value);
  add(box, "span", end(low), "dim");
  const bar = add(box, "span", "", "bar"), stops = [];
  for (let i = 0; i <= 8; ++i) stops.push(colour_of(mode, low + (state.scale - low) * i / 8, state.scale) || "transparent");
  bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  add(box, "span", end(state.scale) + (mode.unit ? ` ${mode.unit}` : ""), "dim");
}

function show_token(element) {
  ui.under?.classList.remove("under");
  ui.under = element;
  ui.token.replaceChildren();
  if (!element) return;
  element.classList.add("under");
  const {member, k, i} = element.at, values = values_at(member, k, i);
  add(ui.token, "b", JSON.stringify(shown(token_text(member.tree.turns[member.turns[k]], i))));
  const parts = [`id ${values.id}`, `turn ${k}`, `position ${i}`];
  for (const name of [...kSignals, ...kCredit]) if (values[name] !== null) parts.push(`${name} ${number(values[name])}`);
  if (values.clip) parts.push(`clip ${kClip[values.clip]}`);
  ui.token.append("  " + parts.join(" \u00b7 "));
}

// --- the page

function on_key(event) {
  const typing = event.target.matches?.("input, select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || (ui.keys?.open && event.key !== "?")) return;
  const act = {
    j: () => go_to(state.group + 1),
    k: () => go_to(state.group - 1),
    ArrowRight: () => choose_sibling(state.sibling + 1),
    ArrowLeft: () => choose_sibling(state.sibling - 1),
    ArrowDown: () => ui.main.scrollBy(0, 80),
    ArrowUp: () => ui.main.scrollBy(0, -80),
    x: fold_sibling,
    s: () => { state.single = !state.single; show_group(); },
    c: () => set_mode(state.mode + 1),
    C: () => set_mode(state.mode - 1),
    t: turn_theme,
    "/": () => ui.search.focus(),
    "?": show_keys,
  }[event.key] ?? (/^[1-4]$/.test(event.key) ? () => set_mode(Number(event.key) - 1) : null);
  if (!act) return;
  event.preventDefault();
  act();
}

if (matchMedia("(prefers-color-scheme: dark)").matches) turn_theme();
build_head();
ui.list = add(document.body, "nav");
ui.main = add(document.body, "main");
const foot = add(document.body, "footer");
ui.legend = add(foot, "span", "", "legend");
ui.token = add(foot, "span");
ui.token.id = "token";
ui.main.addEventListener("mouseover", event => { if (event.target.at) show_token(event.target); });
document.addEventListener("keydown", on_key);
filter();
