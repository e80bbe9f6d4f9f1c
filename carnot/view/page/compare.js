// Two methods on the same rollouts: what each gives a token, the difference as a colour, and where they disagree.

const kMostListed = 200;

const credit_at = (member, k, i, method) => {
  const values = values_at(member, k, i, method);
  return values.advantage === null ? null : values.advantage * (values.weight ?? 1);
};

const oppose = (a, b) => a * b < 0 && Math.min(Math.abs(a), Math.abs(b)) > 1e-9;

function opposed_at(member, k, i) {
  if (kMethods.second === null) return false;
  return oppose(credit_at(member, k, i, kMethods.first) ?? 0, credit_at(member, k, i, kMethods.second) ?? 0);
}

// Mean of advantage times weight over the sampled tokens of a turn; null if it has none.
function turn_credit(member, k, method) {
  const [begin, end] = member.tree.turns[member.turns[k]].sampled, values = [];
  for (let i = begin; i < end; ++i) values.push(credit_at(member, k, i, method));
  return mean(values.filter(value => value !== null));
}

// The turns on which both methods differ: those with opposite signs first, then by the size of the difference.
function disagreements(groups) {
  const found = [];
  groups.forEach((group, number) => members_of(group).forEach((member, sibling) => member.turns.forEach((_, k) => {
    const first = turn_credit(member, k, kMethods.first), second = turn_credit(member, k, kMethods.second);
    if (first === null || second === null || Math.abs(first - second) < 1e-9) return;
    found.push({number, sibling, k, group, member, first, second, opposed: oppose(first, second)});
  })));
  return found.sort((a, b) => b.opposed - a.opposed || Math.abs(b.first - b.second) - Math.abs(a.first - a.second));
}

// The lists of methods; what was chosen stays if it can.
function fill_methods() {
  const known = data.methods.map((method, i) => [String(i), method.missing ? method.name + " (signals missing)" : method.name, !!method.missing]);
  fill(ui.method, known);
  fill(ui.other, [["", "none"], ...known]);
  if (ui.method.selectedOptions[0]?.disabled) ui.method.value = String(Math.max(0, data.methods.findIndex(method => !method.missing)));
  if (ui.other.selectedOptions[0]?.disabled) ui.other.value = "";
  ui.method.parentNode.hidden = ui.other.parentNode.hidden = data.methods.length < 2;
  read_methods();
}

function read_methods() {
  kMethods.first = Number(ui.method.value);
  kMethods.second = ui.other.value === "" || ui.other.value === ui.method.value ? null : Number(ui.other.value);
}

function methods_changed() {
  read_methods();
  if (kMethods.second !== null && kModes[state.mode].name !== "difference") state.mode = kModes.findIndex(mode => mode.name === "difference");
  build_budget();
  set_mode(state.mode);
  show_group();
  write_link();
}

// The next choice of a list that can be chosen.
function next_choice(select) {
  if (data.methods.length < 2) return;
  const options = [...select.options].filter(option => !option.disabled);
  select.value = options[(options.findIndex(option => option.value === select.value) + 1) % options.length].value;
  methods_changed();
}

// The list of disagreements, where no token is open.
function build_differences() {
  const found = disagreements(state.groups), opposed = found.filter(one => one.opposed).length;
  add(ui.side, "div", "", "sidehead").append(`${data.methods[kMethods.first].name} against ${data.methods[kMethods.second].name}`);
  add(ui.side, "p", `${found.length} turns differ, ${opposed} of them in sign` + (found.length > kMostListed ? `; the first ${kMostListed}:` : ""), "dim");
  const table = add(ui.side, "table", "", "chain differences");
  for (const one of found.slice(0, kMostListed)) {
    const line = add(table, "tr"), what = add(line, "td"), scale = Math.max(Math.abs(one.first), Math.abs(one.second));
    add(what, "span", `step ${one.group.step} \u00b7 ${shown(one.member.leaf.id)} \u00b7 turn ${one.k}`, one.opposed ? "name" : "");
    if (one.opposed) add(what, "span", " opposite signs", "dim");
    const cell = add(line, "td", "", "bars");
    bar_of(cell, one.first, scale);
    bar_of(cell, one.second, scale);
    add(line, "td", `${signed(one.first)} | ${signed(one.second)}`, "change");
    line.addEventListener("click", () => { go_to(one.number); choose_sibling(one.sibling); choose_turn(one.k); });
  }
}
