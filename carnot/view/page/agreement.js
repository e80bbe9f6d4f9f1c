// How far each method's credit agrees with advantages that continuations have measured, turn by turn.

// Pairs of a turn's measured advantage and the method's mean of advantage times weight, where both are known.
function measured_pairs(groups, method) {
  const pairs = [];
  for (const group of groups) for (const member of members_of(group)) {
    if (!counts(member.leaf)) continue;
    member.turns.forEach((number, k) => {
      const turn = member.tree.turns[number], measured = at(turn.advantage_oracle, 0), credit = turn_credit(member, k, method);
      if (measured !== null && credit !== null) pairs.push([measured, credit]);
    });
  }
  return pairs;
}

// Pearson's correlation; null where one side does not vary.
function correlation(pairs) {
  const [x, y] = [0, 1].map(side => mean(pairs.map(pair => pair[side])));
  let both = 0, first = 0, second = 0;
  for (const [a, b] of pairs) {
    both += (a - x) * (b - y);
    first += (a - x) ** 2;
    second += (b - y) ** 2;
  }
  return first > 0 && second > 0 ? both / Math.sqrt(first * second) : null;
}

function build_agreement() {
  ui.agreement.replaceChildren();
  ui.agreement.hidden = !data.groups.some(group => group.trees.some(tree => tree.turns.some(turn => turn.advantage_oracle !== undefined)));
  if (ui.agreement.hidden) return;
  add(ui.agreement, "span", "agreement with measured advantages", "dim").title =
    "Over turns: Pearson's correlation of the method's mean advantage times weight with the advantage that continuations have measured, and the share of turns with the same sign, of those where neither is 0";
  data.methods.forEach((method, m) => {
    if (method.missing) return;
    const pairs = measured_pairs(data.groups, m), r = correlation(pairs), signed_pairs = pairs.filter(([a, b]) => a * b !== 0);
    const same = mean(signed_pairs.map(([a, b]) => a * b > 0 ? 1 : 0));
    add(ui.agreement, "span", `${method.name}: r ${r === null ? "-" : r.toFixed(2)}, sign ${same === null ? "-" : percent(same)} of ${pairs.length} turns`);
  });
}
