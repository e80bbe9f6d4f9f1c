// Work on many items, in slices that leave the page free to answer.

const kFirstSlice = 20;  // ms that are taken at once, so that small pages have everything at first

// Calls `visit` on each item and then `done`. Returns a function that stops it.
function in_slices(items, visit, done = () => {}) {
  let next = 0, stopped = false;
  const start = performance.now();
  const work = left => {
    if (stopped) return;
    while (next < items.length && left() > 1) visit(items[next++]);
    if (next === items.length) return done();
    requestIdleCallback(deadline => work(() => deadline.timeRemaining()));
  };
  work(() => kFirstSlice - (performance.now() - start));
  return () => { stopped = true; };
}

// The groups that follow the script in the document, as they arrive.
function take_later_groups() {
  if (!data.later) return;
  let taken = 0;
  const look = () => {
    const parts = [...document.querySelectorAll("script.more")].slice(0, document.readyState === "loading" ? -1 : undefined);
    in_slices(parts, part => {
      data.groups.push(...JSON.parse(part.textContent));
      part.remove();
      ++taken;
    }, () => {
      if (parts.length) groups_arrived(taken / data.later);
      if (taken < data.later) setTimeout(look, 50);
    });
  };
  look();
}

function groups_arrived(share) {
  ui.arrived.textContent = share < 1 ? `${percent(share)} of the groups` : "";
  list_groups();
  if (share < 1) return;
  ui.tasks = null;
  fill_choices();
  build_budget();
  build_agreement();
  prepare_search(data.groups);
}
