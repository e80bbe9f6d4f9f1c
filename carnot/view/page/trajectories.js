// The trajectories that this page holds as JSON (view/page.h), and what is computed from them. Knows no element but the
// one that holds the data.
"use strict";

let data = JSON.parse(document.getElementById("data").textContent);
const kKinds = ["template", "prompt", "think", "action", "observation"];
const kSignals = ["entropy", "logp_rollout", "logp_old", "logp", "logp_after", "logp_ref", "value", "advantage_oracle"];  // of turns
const kCredit = ["advantage", "weight", "clip_scale", "value_target", "ratio", "gradient"];  // of leaves, by method
const kClip = {n: "none", l: "low", h: "high", d: "dual", m: "limit", "-": "not trained"};
const kClipColours = {l: "#3b82d6", h: "#e0662f", d: "#9353c7", m: "#a07a2c"};
const kOrange = "224,110,30", kBlue = "45,120,220", kGreen = "40,150,95";
const kMethods = {first: 0, second: null};  // numbers of the methods that are shown
const kMostOpen = 40000;  // tokens of a group of which every turn is open at first

// What tokens are coloured by: `of` is the value of a token; `scale` says whether values have one side, two, or are words.
const kModes = [
  {name: "entropy", of: at => at.entropy, scale: "high", colours: [kOrange], unit: "nats"},
  {name: "advantage", of: at => at.advantage, scale: "both", colours: [kOrange, kBlue]},
  {name: "weight", of: at => at.weight === null ? null : at.weight - 1, scale: "both", colours: [kOrange, kGreen], centre: 1},
  {name: "clip state", of: at => at.clip, scale: "words"},
  {name: "signal", of: at => at.gradient === null ? null : -at.gradient, scale: "both", colours: [kOrange, kBlue]},
  {name: "log-probability", of: at => at.logp_rollout === null ? null : -at.logp_rollout, scale: "high", colours: [kOrange], sign: -1, unit: "nats"},
  {name: "value", of: at => at.value, scale: "both", colours: [kOrange, kBlue]},
  {name: "moved", of: at => at.moved, scale: "both", colours: [kOrange, kBlue], unit: "nats"},
  {name: "measured advantage", of: at => at.advantage_oracle, scale: "both", colours: [kOrange, kBlue]},
  {name: "difference", of: at => at.difference, scale: "both", colours: [kOrange, kBlue]},
  {name: "no colour", of: () => null, scale: "none"},
];

function number(value) {
  if (typeof value !== "number") return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : 4)));
}

const short = value => value === null ? "-" : String(Number(value.toFixed(2)));

// Control characters, and those that change the direction of what follows, as signs that can be seen.
const shown = text => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, c => c === "\x7f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0)))
  .replace(/[\u0080-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, c => `\\u{${c.charCodeAt(0).toString(16)}}`);

// Entry `i` of a list that may be written as its one value, or as one for each turn, of which this is number `k`.
const at = (list, i, k) => Array.isArray(list) ? list[i] ?? null : list?.turns ? list.turns[k] ?? null : list ?? null;

// What a method made of a leaf.
const credit_of = (leaf, method = kMethods.first) => leaf.credit?.[method] ?? {};

const token_text = (turn, i) => data.vocabulary === null ? turn.tokens[i] + " "
  : turn.texts?.[i] ?? data.vocabulary[turn.tokens[i]] ?? "";
const text_of = turn => turn.tokens.map((_, i) => token_text(turn, i)).join("");

const mean = values => values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;

// Numbers of the turns from the root to a leaf.
function path(tree, leaf) {
  const turns = [];
  for (let turn = leaf.turn; turn >= 0; turn = tree.turns[turn].parent) turns.unshift(turn);
  return turns;
}

const counts = leaf => leaf.outcome !== "infra_failed" && !leaf.dropped;

// One object a trajectory: its tree, leaf, turns, and where the sampled tokens of each turn begin among all of them.
function members_of(group) {
  return group.members ??= group.trees.flatMap(tree => tree.leaves.map(leaf => {
    const turns = path(tree, leaf), begins = [];
    let sampled = 0, tokens = 0;
    for (const turn of turns) {
      begins.push(sampled);
      sampled += tree.turns[turn].sampled[1] - tree.turns[turn].sampled[0];
      tokens += tree.turns[turn].tokens.length;
    }
    return {tree, leaf, turns, begins, sampled, tokens};
  }));
}

// How far the step moved the token's log-probability, up to the checkpoint that measured it; else how far its earlier
// updates did, before the last; null if neither is known.
function moved_of({logp_after, logp, logp_old, logp_rollout}) {
  const old = logp_old ?? logp_rollout, now = logp_after ?? logp;
  return now === null || old === null ? null : now - old;
}

// Advantage times weight by the first method minus the second's; null if one of them gives none.
function difference_of(leaf, n, k) {
  const [first, second] = [kMethods.first, kMethods.second].map(method => {
    const credit = credit_of(leaf, method), advantage = at(credit.advantage, n, k);
    return advantage === null ? null : advantage * (at(credit.weight, n, k) ?? 1);
  });
  return first === null || second === null ? null : first - second;
}

// Everything that is known of token `i` of the member's turn number `k`, which was sampled.
function values_at(member, k, i, method = kMethods.first) {
  const turn = member.tree.turns[member.turns[k]], inside = i - turn.sampled[0], all = member.begins[k] + inside;
  const values = {turn: k, position: i, id: turn.tokens[i]};
  for (const name of kSignals) values[name] = at(turn[name], inside);
  values.moved = moved_of(values);
  const credit = credit_of(member.leaf, method);
  for (const name of kCredit) values[name] = at(credit[name], all, k);
  if (kMethods.second !== null && method === kMethods.first) values.difference = difference_of(member.leaf, all, k);
  values.clip = credit.clip?.[all] ?? null;
  return values;
}

function each_sampled(member, visit, method = kMethods.first) {
  member.turns.forEach((number, k) => {
    const [begin, end] = member.tree.turns[number].sampled;
    for (let i = begin; i < end; ++i) visit(values_at(member, k, i, method));
  });
}

// The largest value that gets the full colour: the 98th percentile, so that one token does not pale all others.
function scale_of(group, mode) {
  const values = [];
  for (const member of members_of(group)) each_sampled(member, values_here => {
    const value = mode.of(values_here);
    if (typeof value === "number") values.push(Math.abs(value));
  });
  values.sort((a, b) => a - b);
  return values.length ? values[Math.floor(0.98 * (values.length - 1))] || values[values.length - 1] || 1 : 0;
}

function colour_of(mode, value, scale) {
  if (value === null || value === undefined || mode.scale === "none") return "";
  if (mode.scale === "words") return kClipColours[value] ?? "";
  const share = Math.min(1, Math.abs(value) / scale);
  const colour = mode.scale === "both" && value > 0 ? mode.colours[1] : mode.colours[0];
  return share < 0.01 ? "" : `rgba(${colour},${(0.75 * share).toFixed(3)})`;
}

// The rewards of a group's trajectories that count, penalties included: their mean, and their standard deviation, without
// which a group teaches nothing.
function rewards_of(group) {
  const rewards = members_of(group).filter(member => counts(member.leaf)).map(({tree, leaf, turns}) =>
    turns.reduce((sum, turn) => sum + (tree.turns[turn].penalty ?? 0), leaf.score));
  const centre = mean(rewards);
  return {mean: centre, spread: rewards.length ? Math.sqrt(mean(rewards.map(reward => (reward - centre) ** 2))) : 0};
}
