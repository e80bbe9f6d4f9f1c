// The head of the page: what it shows, filters, and how. Texts of models only ever become text nodes.

function add(parent, tag, text = "", className = "") {
  const element = parent.appendChild(document.createElement(tag));
  if (text !== "") element.textContent = text;
  if (className) element.className = className;
  return element;
}

const state = {groups: [], group: 0, sibling: 0, turn: 0, token: null, mode: 0, single: false};
const ui = {};

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
    select.addEventListener("change", () => { select.blur(); chosen(); });
    return select;
  };
  const input = (label, className, type) => {
    const field = add(add(head, "label", label + " "), "input", "", className);
    field.type = type;
    if (type === "number") field.step = "any";
    field.addEventListener("input", filter);
    return field;
  };
  ui.step = choice("step", []);
  ui.outcome = choice("outcome", []);
  ui.least = input("score from", "number", "number");
  ui.most = input("to", "number", "number");
  ui.search = input("text", "search", "search");
  ui.order = choice("sort by", Object.keys(kOrders).map(name => [name, name]));
  ui.order.addEventListener("change", () => go_to(0));
  ui.mode = add(add(head, "label", "colour "), "select");
  kModes.forEach((mode, i) => add(ui.mode, "option", mode.name).value = i);
  ui.mode.addEventListener("change", () => { ui.mode.blur(); set_mode(Number(ui.mode.value)); });
  [ui.method, ui.other] = ["method", "against"].map(label => {
    const field = add(head, "label", label + " "), select = add(field, "select");
    select.addEventListener("change", () => { select.blur(); methods_changed(); });
    return select;
  });
  ui.arrived = add(head, "span", "", "dim");
  const button = (text, title, act) => {
    const element = add(buttons, "button", text);
    element.title = title;
    element.addEventListener("click", () => { element.blur(); act(); });
  };
  button("\u25d0", "light or dark (t)", turn_theme);
  button("?", "keys (?)", show_keys);
  ui.budget = add(bar, "div", "", "budget");
  ui.agreement = add(bar, "div", "", "agreement");
  ui.curves = add(bar, "div", "", "curves");
  if (kServed) build_live(bar);
  ui.notes = add(bar, "div", "", "note");
  build_notes();
  fill_methods();
  fill_choices();
}

function build_notes() {
  ui.notes.replaceChildren();
  for (const note of data.notes) add(ui.notes, "div", shown(note));
}

// Gives a list these choices, and keeps what was chosen if it is among them.
function fill(select, choices) {
  const chosen = select.value;
  select.replaceChildren();
  for (const [value, text, disabled] of choices) Object.assign(add(select, "option", text), {value, disabled: !!disabled});
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}

// Steps and outcomes. A served page can fetch the steps that it does not have.
function fill_choices() {
  const words = values => [["", "any"], ...[...new Set(values)].map(value => [String(value), String(value)])];
  const leaves = data.groups.flatMap(group => members_of(group).map(member => member.leaf));
  fill(ui.step, words(kServed ? data.steps : data.groups.map(group => group.step)));
  fill(ui.outcome, [...words(leaves.map(leaf => leaf.outcome)), ["+", "success"], ["-", "no success"]]);
}

function chosen() {
  const step = Number(ui.step.value);
  if (kServed && ui.step.value && !data.groups.some(group => group.step === step)) load([step]);
  else filter();
}

function turn_theme() { document.documentElement.classList.toggle("dark"); }

function show_keys() {
  if (!ui.keys) {
    ui.keys = add(document.body, "dialog");
    add(ui.keys, "h2", "Keys");
    const table = add(ui.keys, "table");
    for (const [keys, what] of [[["j", "k"], "next and previous group"], [["\u2192", "\u2190"], "next and previous sibling"],
                                [["\u2193", "\u2191"], "scroll"], [["x"], "fold or unfold the sibling's turns"],
                                [["n", "p"], "next and previous turn of the sibling"], [["Enter"], "where the turn's largest signal comes from"],
                                [["w", "b"], "next and previous token"], [["]", "["], "the same task at a later and an earlier step"], [["s"], "this sibling alone, or all side by side"], [["c", "C"], "next and previous colour"],
                                [["1", "2", "3", "4", "5"], "entropy, advantage, weight, clip state, signal"], [["m", "M"], "next method, and next one to compare it with"], [["/"], "search in the texts"],
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
