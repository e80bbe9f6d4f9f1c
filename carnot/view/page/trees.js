// A branched group as trees: each shared turn once, its line as wide as the leaves behind it score on average, and where
// and why it branched.

const kSvg = "http://www.w3.org/2000/svg", kTurnWidth = 150, kLeafHeight = 22;

function draw(parent, tag, attributes, text) {
  const element = parent.appendChild(document.createElementNS(kSvg, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const is_branched = group => group.trees.some(tree => tree.leaves.length > 1);

// The turns of a tree with where they are drawn: `depth` counts from the root, `row` is the mean row of the leaves behind.
function layout_of(tree, members, first_row) {
  const places = tree.turns.map(() => ({depth: 0, rows: [], scores: [], members: []}));
  members.forEach((member, n) => member.turns.forEach((turn, depth) => {
    const place = places[turn];
    place.depth = depth;
    place.rows.push(first_row + n);
    place.members.push(member);
    if (counts(member.leaf)) place.scores.push(member.leaf.score);
  }));
  for (const place of places) {
    place.row = mean(place.rows);
    place.score = mean(place.scores);
  }
  return places;
}

// Leaves in the order of the tree, so that lines do not cross.
function tree_order(tree, members) {
  const key = member => member.turns.map(turn => String(turn).padStart(6, "0")).join("/");
  return [...members].sort((a, b) => key(a) < key(b) ? -1 : 1);
}

// What the policy did in a turn, in short: the text of its actions, or of all it sampled.
function gist_of(turn) {
  const [begin, end] = turn.sampled;
  const part = kinds => (turn.spans ?? []).filter(([kind]) => kinds.includes(kind)).map(([, from, to]) => {
    let text = "";
    for (let i = Math.max(from, begin); i < Math.min(to, end); ++i) text += token_text(turn, i);
    return text;
  }).join("");
  return shown((part([3]) || part([2, 3])).replace(/\s+/g, " ").trim());
}

// What the branch policy saw of a turn: the entropy of its first tokens, and how far it is above the first turn's.
function entropy_seen(tree, member, k) {
  const seen = tree.turns[member.turns[k]].turn_entropy, first = tree.turns[member.turns[0]].turn_entropy;
  if (seen === undefined) return "";
  const rise = k > 0 && first !== undefined ? `, ${signed(seen - first)} to the first turn's` : "";
  return `entropy of its first tokens ${number(seen)}${rise}`;
}

// The trajectories that left others between this turn, number `depth` of its path, and the next.
function branches_behind(tree, place) {
  return place.members.filter(({leaf}) => leaf.branch_turn === place.depth + 1).map(member => {
    const from = members_by_leaf(place).get(tree.leaves[member.leaf.parent]);
    const seen = from && from.turns.length > place.depth + 1 ? entropy_seen(tree, from, place.depth + 1) : "";
    return `${shown(member.leaf.id)} left ${shown(tree.leaves[member.leaf.parent].id)} here` + (seen && `; the turn that it left: ${seen}`);
  });
}

const members_by_leaf = place => new Map(place.members.map(member => [member.leaf, member]));

function build_trees(parent, group) {
  if (!is_branched(group)) return;
  const members = members_of(group), scores = members.filter(member => counts(member.leaf)).map(member => member.leaf.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  const width_of = score => score === null ? 1 : high > low ? 2 + 8 * (score - low) / (high - low) : 4;
  const depth = Math.max(...members.map(member => member.turns.length));
  const box = add(parent, "details", "", "trees");
  box.open = true;
  add(box, "summary", `tree \u00b7 line width: mean score from ${number(low)} to ${number(high)} \u00b7 \u25c6 branch`);
  const svg = draw(box, "svg", {width: depth * kTurnWidth + 130, height: members.length * kLeafHeight + 12});
  let row = 0;
  for (const tree of group.trees) {
    const own = tree_order(tree, members.filter(member => member.tree === tree)), places = layout_of(tree, own, row);
    row += own.length;
    tree.turns.forEach((turn, number) => { if (places[number].rows.length) draw_turn(svg, group, tree, places, number, width_of); });
    for (const member of own) draw_leaf(svg, member, places[member.leaf.turn], own);
  }
}

const x_of = depth => 8 + depth * kTurnWidth;
const y_of = row => 14 + row * kLeafHeight;

function draw_turn(svg, group, tree, places, number, width_of) {
  const place = places[number], turn = tree.turns[number], parent = places[turn.parent], [member] = place.members;
  const x = x_of(place.depth), y = y_of(place.row), width = width_of(place.score), gist = gist_of(turn);
  const box = draw(svg, "g", {class: "branch", "data-turn": number});
  if (parent) {
    const from = y_of(parent.row), before = x - 14;
    draw(box, "path", {d: `M${before},${from} C${x - 4},${from} ${before},${y} ${x},${y}`, "stroke-width": width});
  }
  draw(box, "path", {d: `M${x},${y} H${x + kTurnWidth - 14}`, "stroke-width": width});
  draw(box, "text", {x: x + 2, y: y - width / 2 - 2}, gist.length > 22 ? gist.slice(0, 21) + "\u2026" : gist);
  const branches = branches_behind(tree, place);
  if (branches.length) draw(box, "text", {x: x + kTurnWidth - 20, y: y + 4, class: "mark"}, "\u25c6");
  const facts = [`turn ${place.depth}`, `leaves behind it ${place.rows.length}, mean score ${place.score === null ? "-" : short(place.score)}`, gist];
  facts.push(...branches, entropy_seen(tree, member, place.depth));
  draw(box, "title", {}, facts.filter(Boolean).join("\n"));
  box.addEventListener("click", () => { choose_sibling(group.members.indexOf(member)); choose_turn(place.depth); });
}

function draw_leaf(svg, member, place, own) {
  const x = x_of(place.depth) + kTurnWidth - 8, y = y_of(place.rows[place.members.indexOf(member)]);
  const {leaf} = member;
  draw(svg, "circle", {cx: x, cy: y, r: 4, class: leaf.success ? "success" : counts(leaf) ? "failure" : "out"});
  draw(svg, "text", {x: x + 8, y: y + 4}, `${number(leaf.score)}  ${shown(leaf.id).split(".").pop()}`);
}
