// Keys, and the parts of the page put together.

function on_key(event) {
  const typing = event.target.matches?.("input, select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || (ui.keys?.open && event.key !== "?")) return;
  const act = {
    j: () => go_to(state.group + 1),
    k: () => go_to(state.group - 1),
    ArrowRight: () => choose_sibling(state.sibling + 1),
    ArrowLeft: () => choose_sibling(state.sibling - 1),
    ArrowDown: () => ui.main.scrollBy(0, 80),
    ArrowUp: () => ui.main.scrollBy(0, -80),
    x: fold_sibling,
    n: () => choose_turn(state.turn + 1),
    p: () => choose_turn(state.turn - 1),
    w: () => move_token(1),
    b: () => move_token(-1),
    Enter: open_turn,
    Escape: close_token,
    m: () => next_choice(ui.method),
    M: () => next_choice(ui.other),
    "]": () => move_in_task(1),
    "[": () => move_in_task(-1),
    s: () => { state.single = !state.single; show_group(); },
    c: () => set_mode(state.mode + 1),
    C: () => set_mode(state.mode - 1),
    t: turn_theme,
    "/": () => ui.search.focus(),
    "?": show_keys,
  }[event.key] ?? (/^[1-5]$/.test(event.key) ? () => set_mode(Number(event.key) - 1) : null);
  if (!act) return;
  event.preventDefault();
  act();
}

if (matchMedia("(prefers-color-scheme: dark)").matches) turn_theme();
build_head();
ui.list = add(document.body, "nav");
ui.list.addEventListener("scroll", show_rows);
new ResizeObserver(show_rows).observe(ui.list);
ui.main = add(document.body, "main");
ui.side = add(document.body, "aside");
ui.side.hidden = true;
const foot = add(document.body, "footer");
ui.legend = add(foot, "span", "", "legend");
ui.token = add(foot, "span");
ui.token.id = "token";
ui.main.addEventListener("mouseover", event => { if (event.target.at) show_token(event.target); });
ui.main.addEventListener("click", event => {
  if (!event.target.at) return;
  choose_turn(event.target.at.k, false);
  open_token(event.target.at.member, event.target.at.k, event.target.at.i);
});
document.addEventListener("keydown", on_key);
addEventListener("hashchange", follow_link);
filter();
follow_link();
build_curves();
prepare_search(data.groups);
take_later_groups();
setTimeout(() => { build_budget(); build_agreement(); });
if (kServed) look_for_steps();
