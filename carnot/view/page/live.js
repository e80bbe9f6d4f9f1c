// The page of `carnot view --follow`: steps appear as the run writes them, and credit is computed again for other
// methods and other numbers. A page in a file has none of this.

const kServed = "served" in document.body.dataset;
const kPollEvery = 2000, kSettleTime = 150;  // ms
const kMostHeld = 8;  // steps; the page forgets others as new ones come
const live = {methods: "", loading: Promise.resolve(), timer: null};

async function ask(path, body) {
  const settings = body && {method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}};
  const reply = await fetch(path, settings), answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

const held_steps = () => [...new Set(data.groups.map(group => group.step))];

// Loads steps, one request after the other, with the credit of `methods`. What is wrong with them is shown.
function load(steps, methods = live.methods) {
  live.loading = live.loading.then(async () => {
    try {
      take(await ask("data", {steps, methods}), steps, methods);
      show_problem("");
    } catch (error) {
      show_problem(error.message);
    }
  });
  return live.loading;
}

// Puts an answer in the place of what the page had of these steps, and shows what was shown.
function take(part, steps, methods) {
  const kept = state.groups[state.group], {sibling, turn, token} = state, shown_member = token && token.member.leaf.id;
  live.methods = methods;
  data.methods = part.methods;
  data.vocabulary = part.vocabulary && {...data.vocabulary, ...part.vocabulary};
  data.groups = data.groups.filter(group => !steps.includes(group.step)).concat(part.groups).sort((a, b) => a.step - b.step);
  ui.tasks = null;
  fill_methods();
  fill_choices();
  state.token = null;
  filter();
  const found = kept ? state.groups.findIndex(group => group.step === kept.step && group.uid === kept.uid) : 0;
  if (found >= 0) {
    Object.assign(state, {group: found, sibling, turn});
    const member = members_of(state.groups[found] ?? {trees: []}).find(one => one.leaf.id === shown_member);
    if (member) state.token = {member, k: token.k, i: token.i};
    show_group();
  }
  build_budget();
  build_agreement();
  build_numbers();
  prepare_search(part.groups);
}

function show_problem(text) {
  ui.problem.textContent = text;
  ui.problem.hidden = !text;
}

// The step that was shown longest ago makes room, but for the one that is shown.
function forget_steps() {
  const shown_step = state.groups[state.group]?.step;
  for (const step of held_steps().sort((a, b) => a - b)) {
    if (held_steps().length <= kMostHeld) return;
    if (step !== shown_step) data.groups = data.groups.filter(group => group.step !== step);
  }
}

async function look_for_steps() {
  try {
    const news = await ask("progress"), newest = news.steps.at(-1), grew = newest !== data.steps.at(-1);
    Object.assign(data, {steps: news.steps, curves: news.curves, notes: news.notes});
    build_curves();
    build_notes();
    ui.running.textContent = news.finished ? "finished" : "running";
    if (grew) {
      forget_steps();
      if (ui.latest.checked) await load([newest]);
      else fill_choices();
    }
  } catch {
    ui.running.textContent = "carnot view has ended";
    return;
  }
  setTimeout(look_for_steps, kPollEvery);
}

// --- methods as text, and their numbers as sliders

const parts_of = name => /^(.*?)(?: \[(.*)\])?$/.exec(name).slice(1);

// The method's name with one of its settings changed.
function with_setting(name, key, value) {
  const [method, settings] = parts_of(name), kept = (settings ?? "").split(" ").filter(one => one && !one.startsWith(key + "="));
  return `${method} [${[...kept, `${key}=${value}`].join(" ")}]`;
}

function change_number(number_of, key, value) {
  const names = data.methods.map(method => method.name);
  names[number_of] = with_setting(names[number_of], key, value);
  ui.methods.value = names.join(", ");
  clearTimeout(live.timer);
  live.timer = setTimeout(() => load(held_steps(), ui.methods.value), kSettleTime);
}

function build_slider(parent, method, key, value) {
  const label = add(parent, "label", `${key} `), slider = add(label, "input"), shown_value = add(label, "span", number(value));
  const largest = value > 0 ? 2 * value : 1;
  Object.assign(slider, {type: "range", min: 0, max: largest, step: largest / 200, value});
  slider.addEventListener("input", () => {
    shown_value.textContent = number(Number(slider.value));
    change_number(method, key, Number(Number(slider.value).toPrecision(4)));
  });
}

// Sliders are kept while they move: the same methods with other numbers have the same sliders.
function build_numbers() {
  const keys = JSON.stringify(data.methods.map(method => [parts_of(method.name)[0], (method.numbers ?? []).map(([key]) => key)]));
  if (ui.numbers.keys === keys) return;
  ui.numbers.keys = keys;
  ui.numbers.replaceChildren(ui.numbers.firstChild);
  ui.numbers.hidden = !data.methods.some(method => method.numbers);
  data.methods.forEach((method, m) => {
    if (!method.numbers) return;
    const box = add(ui.numbers, "div", "", "sliders");
    add(box, "b", parts_of(method.name)[0]);
    for (const [key, value] of method.numbers) build_slider(box, m, key, value);
  });
}

function build_live(bar) {
  const line = add(bar, "div", "", "live");
  ui.running = add(line, "span", "", "dim");
  ui.methods = add(add(line, "label", "credit by "), "input", "", "methods");
  ui.methods.placeholder = "the rows' own; or: grpo, grpo + aem [aem.lambda=0.5]";
  ui.methods.value = live.methods = data.methods.every(method => method.numbers) ? data.methods.map(method => method.name).join(", ") : "";
  ui.methods.addEventListener("change", () => load(held_steps(), ui.methods.value));
  const latest = add(line, "label", "add new steps ");
  ui.latest = add(latest, "input");
  Object.assign(ui.latest, {type: "checkbox", checked: true});
  ui.numbers = add(line, "details");
  add(ui.numbers, "summary", "numbers");
  ui.problem = add(bar, "div", "", "note problem");
  ui.problem.hidden = true;
  build_numbers();
}
