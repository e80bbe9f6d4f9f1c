// One task over training: the groups of the page that begin with the same prompt and expect the same answer.

const kPlacesListed = 40;

// What says that two groups are of the same task.
function task_of(group) {
  group.task ??= JSON.stringify([group.trees[0].turns[0].tokens.slice(0, group.trees[0].turns[0].sampled[0]), group.truth ?? null, group.info ?? null]);
  return group.task;
}

// The groups of each task that is on the page more than once, by step.
function repeated_tasks() {
  const tasks = new Map();
  for (const group of data.groups) {
    const key = task_of(group);
    if (!tasks.has(key)) tasks.set(key, []);
    tasks.get(key).push(group);
  }
  for (const [key, groups] of tasks) {
    if (groups.length < 2) tasks.delete(key);
    else groups.sort((a, b) => a.step - b.step);
  }
  return tasks;
}

const success_of = group => {
  const valid = members_of(group).filter(member => member.leaf.outcome !== "infra_failed");
  return valid.length ? valid.filter(member => member.leaf.success).length / valid.length : null;
};

// A row for each step at which the page has the task: success, and how each sibling ended, the best first.
function build_task(parent, group) {
  ui.tasks ??= repeated_tasks();
  const groups = ui.tasks.get(task_of(group));
  if (!groups) return;
  const box = add(parent, "details", "", "task");
  box.open = true;
  add(box, "summary", `this task at ${groups.length} places: success, and how each sibling ended`);
  const table = add(box, "table");
  const here = Math.max(0, groups.indexOf(group) - kPlacesListed / 2);
  for (const one of groups.slice(here, here + kPlacesListed)) {
    const line = add(table, "tr", "", one === group ? "chosen" : ""), share = success_of(one);
    add(line, "td", `step ${one.step}`);
    const track = add(add(line, "td"), "span", "", "success_bar"), bar = add(track, "span");
    bar.style.width = `${100 * (share ?? 0)}%`;
    add(line, "td", share === null ? "-" : `${Math.round(100 * share)} %`);
    const ends = add(line, "td", "", "ends");
    for (const member of [...members_of(one)].sort((a, b) => b.leaf.score - a.leaf.score)) {
      dot_of(ends, member);
      const end = shown(member.leaf.answer ?? "") || gist_of(member.tree.turns[member.leaf.turn]) || member.leaf.outcome;
      add(ends, "span", end.length > 22 ? end.slice(0, 21) + "\u2026" : end, "end");
    }
    line.addEventListener("click", () => { const at = state.groups.indexOf(one); if (at >= 0) go_to(at); });
  }
}

// The next place of the group's task among the groups of the list.
function move_in_task(by) {
  const groups = ui.tasks?.get(task_of(state.groups[state.group] ?? data.groups[0]))?.filter(group => state.groups.includes(group));
  if (!groups) return;
  const next = groups[groups.indexOf(state.groups[state.group]) + by];
  if (next) go_to(state.groups.indexOf(next));
}
