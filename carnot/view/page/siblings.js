// One group: its trajectories next to each other, turn by turn.

function paint(element, values) {
  const mode = kModes[state.mode], value = mode.of(values);
  element.style.background = colour_of(mode, value, state.scale);
  element.classList.toggle("opposed", mode.name === "difference" && opposed_at(element.at.member, element.at.k, element.at.i));
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
  const credit = name => mean(Array.from({length: own}, (_, i) => at(credit_of(leaf)[name], member.begins[k] + i, k)).filter(value => value !== null));
  if (leaf.branch_turn > k) parts.push(`shared with ${shown(member.tree.leaves[leaf.parent].id)}`);
  if (kMethods.second !== null) {
    const credits = [kMethods.first, kMethods.second].map(method => turn_credit(member, k, method));
    if (credits[0] !== null) parts.push(`A\u00d7w ${credits.map(value => value === null ? "-" : digits(value)).join(" | ")}`);
  } else if (credit("advantage") !== null) {
    parts.push(`A ${digits(credit("advantage"))}`);
  }
  if (signal("entropy") !== null) parts.push(`H ${digits(signal("entropy"))}`);
  parts.push(`${own} sampled`);
  if (turn.tool) parts.push(shown(turn.tool) + (turn.status ? ` ${shown(turn.status)}` : ""));
  if (turn.reward) parts.push(`reward ${number(turn.reward)}`);
  if (turn.penalty) parts.push(`penalty ${number(turn.penalty)}`);
  if (turn.valid_action === false) parts.push("not valid");
  if (turn.info_gain !== undefined) parts.push(`gain ${number(turn.info_gain)}`);
  return parts.join(" \u00b7 ");
}

const kTokensOfLine = 25;  // about

// Opens a turn of so many tokens as an empty box of about their height, filled as it comes into view.
function fill_when_seen(fold, box, tokens) {
  fold.open = true;
  box.style.minHeight = `${1.5 * tokens / kTokensOfLine}em`;
  new IntersectionObserver(([entry], observer) => {
    if (!entry.isIntersecting) return;
    observer.disconnect();
    fold.fill();
    box.style.minHeight = "";
  }, {root: ui.main, rootMargin: "1000px"}).observe(box);
}

function build_member(parent, member, number_of, open, many) {
  const card = add(parent, "article"), head = add(card, "div", "", "head"), {leaf} = member;
  add(head, "b", shown(leaf.id));
  add(head, "span", leaf.outcome + (leaf.success ? ", success" : ""), leaf.success ? "good" : counts(leaf) ? "" : "bad");
  const penalties = penalties_of(member);
  const facts = [`score ${number(leaf.score)}`, `${member.turns.length} turns`, `${member.tokens} tokens`];
  if (penalties) facts.splice(1, 0, `penalties ${number(penalties)}`);
  if (leaf.branch_turn !== undefined) facts.push(`left ${shown(member.tree.leaves[leaf.parent].id)} ${leaf.branch_turn ? `after turn ${leaf.branch_turn - 1}` : "at the start"}`);
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
    fold.addEventListener("toggle", () => { if (fold.open && !box.style.minHeight) fold.fill(); });
    // What siblings share is folded, and so are all others where there is too much of it.
    if (!open || leaf.branch_turn > k) return;
    if (many) return fill_when_seen(fold, box, member.tree.turns[member.turns[k]].tokens.length);
    fold.fill();
    fold.open = true;
  });
  return card;
}

function show_group() {
  const group = state.groups[state.group];
  mark_step();
  ui.main.replaceChildren();
  if (!group) {
    state.token = null;
    return show_waterfall();
  }
  show_row(state.group);
  add(ui.main, "h2", `step ${group.step} \u00b7 ${shown(group.uid)}`);
  const facts = Object.entries(group.info ?? {}).map(([name, value]) => `${shown(name)} ${shown(value)}`);
  if (group.truth) facts.unshift("right: " + group.truth.map(shown).join(" | "));
  facts.unshift(`${group.members.length} trajectories, ${group.members.filter(member => member.leaf.success).length} with success`);
  add(ui.main, "div", facts.join(" \u00b7 "), "dim");
  build_trees(ui.main, group);
  build_task(ui.main, group);
  state.scale = scale_of(group, kModes[state.mode]);
  const many = group.members.reduce((sum, member) => sum + member.tokens, 0) > kMostOpen;
  const box = add(ui.main, "div", "", "siblings" + (state.single ? " single" : "") + (many ? " many" : ""));
  group.cards = group.members.map((member, i) => {
    if (state.single && i !== state.sibling) return null;
    return build_member(box, member, i, !many || i === state.sibling, many);
  });
  mark_sibling();
  show_waterfall();
  build_legend();
}

function mark_sibling() {
  const {cards} = state.groups[state.group];
  cards.forEach((card, i) => card?.classList.toggle("chosen", i === state.sibling));
  mark_turn(false);
}

function choose_sibling(sibling, scroll = true) {
  const group = state.groups[state.group];
  if (!group || sibling < 0 || sibling >= group.members.length) return;
  if (sibling !== state.sibling) state.turn = 0;
  state.sibling = sibling;
  if (state.single) return show_group();
  mark_sibling();
  if (scroll) group.cards[sibling].scrollIntoView({block: "nearest", inline: "nearest"});
}

function fold_sibling() {
  const folds = folds_of(state.sibling);
  const open = !folds.some(fold => fold.open);
  for (const fold of folds) { if (open) fold.fill(); fold.open = open; }
}
