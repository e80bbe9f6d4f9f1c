// The list of groups: which ones, and in what order.

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
  if (state.groups[state.group] !== kept) state.token = null;
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
  state.sibling = state.turn = 0;
  state.token = null;
  show_group();
  write_link();
}
