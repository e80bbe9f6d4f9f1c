// The address of a token: the page's address with #step=5&group=...&trajectory=...&turn=2&token=14.

function write_link() {
  const group = state.groups[state.group], parts = new URLSearchParams();
  if (!group) return;
  parts.set("step", group.step);
  parts.set("group", group.uid);
  if (state.token) {
    parts.set("trajectory", state.token.member.leaf.id);
    parts.set("turn", state.token.k);
    parts.set("token", state.token.i);
  }
  if (kMethods.first) parts.set("method", data.methods[kMethods.first].name);
  if (kMethods.second !== null) parts.set("against", data.methods[kMethods.second].name);
  state.link = "#" + parts;
  if (location.hash !== state.link) history.replaceState(null, "", state.link);
}

// Goes where the address says, as far as the page has it.
function follow_link() {
  if (location.hash.length < 2 || location.hash === state.link) return;
  const parts = new URLSearchParams(location.hash.slice(1));
  const group = state.groups.findIndex(one => String(one.step) === parts.get("step") && one.uid === parts.get("group"));
  if (group < 0) return;
  if (data.methods.length > 1) {
    for (const [select, name] of [[ui.method, "method"], [ui.other, "against"]]) {
      const method = data.methods.findIndex(one => one.name === parts.get(name) && !one.missing);
      if (method >= 0) select.value = String(method);
    }
    methods_changed();
  }
  go_to(group);
  const {members} = state.groups[group], sibling = members.findIndex(member => member.leaf.id === parts.get("trajectory"));
  if (sibling < 0) return;
  choose_sibling(sibling);
  const k = Number(parts.get("turn")), i = Number(parts.get("token")), turn = members[sibling].tree.turns[members[sibling].turns[k]];
  if (!turn || !(i >= turn.sampled[0] && i < turn.sampled[1])) return;
  choose_turn(k);
  open_token(members[sibling], k, i);
}
