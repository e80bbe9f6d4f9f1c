// What tokens are coloured by, and the line that explains it.

function set_mode(mode) {
  state.mode = (mode + kModes.length) % kModes.length;
  ui.mode.value = state.mode;
  const group = state.groups[state.group];
  if (!group) return;
  state.scale = scale_of(group, kModes[state.mode]);
  for (const token of ui.main.querySelectorAll("i")) paint(token, values_at(token.at.member, token.at.k, token.at.i));
  build_legend();
}

function build_legend() {
  const mode = kModes[state.mode], box = ui.legend;
  box.replaceChildren();
  add(box, "span", mode.name);
  if (mode.name === "difference" && kMethods.second !== null) add(box, "span", "opposite signs", "key opposed");
  if (mode.scale === "none") return;
  if (mode.scale === "words") {
    const found = new Set();
    for (const member of state.groups[state.group].members) each_sampled(member, values => values.clip && found.add(values.clip));
    if (!found.size) add(box, "span", "is not known here", "dim");
    for (const letter of found) {
      const key = add(box, "span", kClip[letter], "key" + (letter === "-" ? " untrained" : ""));
      key.style.background = kClipColours[letter] ?? "";
    }
    return;
  }
  if (!state.scale) return add(box, "span", "is not known here", "dim");
  const low = mode.scale === "both" ? -state.scale : 0;
  const end = value => number((mode.centre ?? 0) + (mode.sign ?? 1) * value);
  add(box, "span", end(low), "dim");
  const bar = add(box, "span", "", "bar"), stops = [];
  for (let i = 0; i <= 8; ++i) stops.push(colour_of(mode, low + (state.scale - low) * i / 8, state.scale) || "transparent");
  bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  add(box, "span", end(state.scale) + (mode.unit ? ` ${mode.unit}` : ""), "dim");
}

function show_token(element) {
  ui.under?.classList.remove("under");
  ui.under = element;
  ui.token.replaceChildren();
  if (!element) return;
  element.classList.add("under");
  const {member, k, i} = element.at, values = values_at(member, k, i);
  add(ui.token, "b", JSON.stringify(shown(token_text(member.tree.turns[member.turns[k]], i))));
  const parts = [`id ${values.id}`, `turn ${k}`, `position ${i}`];
  for (const name of [...kSignals, ...kCredit]) if (values[name] !== null) parts.push(`${name} ${number(values[name])}`);
  if (values.clip) parts.push(`clip ${kClip[values.clip]}`);
  ui.token.append("  " + parts.join(" \u00b7 "));
}
