// The list of groups: which ones, and in what order.

function fits(member, texts) {
  const leaf = member.leaf, outcome = ui.outcome.value;
  if (outcome === "+" ? !leaf.success : outcome === "-" ? leaf.success : outcome && leaf.outcome !== outcome) return false;
  if (ui.least.value !== "" && !(leaf.score >= Number(ui.least.value))) return false;
  if (ui.most.value !== "" && !(leaf.score <= Number(ui.most.value))) return false;
  return !texts || member.turns.some(turn => searched(member.tree.turns[turn]).includes(texts));
}

const searched = turn => turn.searched ??= text_of(turn).toLowerCase();

// Puts the texts together while nothing else is to be done, so that the first search need not.
const prepare_search = groups => in_slices(groups.flatMap(group => group.trees.flatMap(tree => tree.turns)), searched);

// The order of the list of groups; equal ones stay as they are.
const kOrders = {
  step: () => 0,
  spread: (a, b) => b.rewards.spread - a.rewards.spread,
  "lowest mean": (a, b) => a.rewards.mean - b.rewards.mean,
  "highest mean": (a, b) => b.rewards.mean - a.rewards.mean,
};

// The groups that the filters leave, in their order; the one that is shown stays so if it is among them.
function list_groups() {
  const kept = state.groups[state.group], texts = ui.search.value.toLowerCase();
  state.groups = data.groups.filter(group => {
    if (ui.step.value && String(group.step) !== ui.step.value) return false;
    group.rewards ??= rewards_of(group);
    for (const member of members_of(group)) member.fits = fits(member, texts);
    return group.members.some(member => member.fits);
  }).sort(kOrders[ui.order.value]);
  state.group = Math.max(0, state.groups.indexOf(kept));
  build_list();
  return kept !== undefined && state.groups[state.group] === kept;
}

function filter() {
  if (!list_groups()) state.token = null;
  show_group();
}

function dot_of(parent, member) {
  const {leaf} = member;
  const dot = add(parent, "span", "", "dot" + (leaf.success ? " success" : "") + (counts(leaf) ? "" : " out") + (member.fits ? "" : " hidden"));
  dot.title = `${leaf.id}: ${leaf.outcome}, score ${number(leaf.score)}`;
}

const kRowHeight = 44, kSpareRows = 8;  // px, as in page.css; rows above and below those that are seen

function build_row(i) {
  const group = state.groups[i], link = add(ui.rows, "a");
  link.style.top = `${i * kRowHeight}px`;
  link.classList.toggle("chosen", i === state.group);
  add(link, "span", `step ${group.step} \u00b7 ${shown(group.uid)}`, "name");
  const line = add(link, "span", "", "line"), dots = add(line, "span", "", "dots");
  for (const member of members_of(group)) dot_of(dots, member);
  const {mean, spread} = group.rewards, signal = spread > 1e-9;
  const score = add(line, "span", short(mean) + (signal ? ` \u00b1 ${short(spread)}` : ""), signal ? "signal" : "dim");
  score.title = `mean reward ${number(mean)}, penalties included, ` +
    (signal ? `standard deviation ${number(spread)}: a signal` : "the same for all: no signal");
  link.addEventListener("click", () => go_to(i));
}

// Only the rows that are seen have elements.
function show_rows() {
  const top = ui.list.scrollTop / kRowHeight, seen = ui.list.clientHeight / kRowHeight;
  const first = Math.max(0, Math.floor(top) - kSpareRows), last = Math.min(state.groups.length, Math.ceil(top + seen) + kSpareRows);
  ui.rows.replaceChildren();
  for (let i = first; i < last; ++i) build_row(i);
}

function build_list() {
  ui.list.replaceChildren();
  ui.rows = add(ui.list, "div", "", "rows");
  ui.rows.style.height = `${state.groups.length * kRowHeight}px`;
  if (!state.groups.length) add(ui.list, "p", "nothing fits", "dim");
  show_rows();
}

// Scrolls the list so that the group's row is seen, and marks it.
function show_row(group) {
  const top = group * kRowHeight, {scrollTop, clientHeight} = ui.list;
  if (top < scrollTop) ui.list.scrollTop = top;
  else if (top + kRowHeight > scrollTop + clientHeight) ui.list.scrollTop = top + kRowHeight - clientHeight;
  show_rows();
}

function go_to(group) {
  if (!state.groups.length) return;
  state.group = Math.min(Math.max(group, 0), state.groups.length - 1);
  state.sibling = state.turn = 0;
  state.token = null;
  show_group();
  write_link();
}
