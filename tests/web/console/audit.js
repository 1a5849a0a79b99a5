// Returns a sentence for everything on a page that hinders someone: a screen reader, a keyboard, a
// narrow screen. It is run in the page by the tests.
() => {
  const found = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (el) => el.getClientRects().length > 0;
  const told = (el) => el.outerHTML.slice(0, 160);
  const byIds = (el, name) => (el.getAttribute(name) || "").split(/\s+/).filter(Boolean);
  const textOf = (ids) => ids.map((id) => document.getElementById(id)?.textContent || "").join(" ");
  const named = (el) =>
    Boolean(
      (el.getAttribute("aria-label") || "").trim() ||
        textOf(byIds(el, "aria-labelledby")).trim() ||
        (el.labels && [...el.labels].some((label) => label.textContent.trim())) ||
        (el.getAttribute("alt") || "").trim() ||
        (el.tagName === "IFRAME" && (el.getAttribute("title") || "").trim())
    );

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth)
    found.push(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}, because of ${widest()}`);
  if (!root.lang) found.push("has no language");
  if (!document.title.trim()) found.push("has no title");
  if (all("h1").length !== 1) found.push(`has ${all("h1").length} h1`);
  if (all("main").length !== 1) found.push(`has ${all("main").length} main`);

  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6").filter(shown)) {
    const own = Number(heading.tagName[1]);
    if (level && own > level + 1) found.push(`skips a level of headings: ${told(heading)}`);
    level = own;
  }

  const ids = all("[id]").map((el) => el.id);
  const twice = new Set(ids.filter((id, i) => ids.indexOf(id) !== i));
  for (const id of twice) found.push(`has the id ${id} twice`);
  for (const name of ["aria-describedby", "aria-labelledby", "aria-controls", "for", "list"])
    for (const el of all(`[${name}]`))
      for (const id of byIds(el, name))
        if (!document.getElementById(id)) found.push(`${name} names nothing: ${told(el)}`);

  for (const el of all("input:not([type=hidden]), select, textarea"))
    if (!named(el)) found.push(`has a field without a label: ${told(el)}`);
  for (const el of all("img, svg[role=img], [role=img], [role=region], [role=group], iframe"))
    if (!named(el)) found.push(`has something without a name: ${told(el)}`);
  for (const el of all(".js-plotly-plot"))
    if (!el.closest("[role=img]") || !named(el.closest("[role=img]")))
      found.push(`has a chart without a name: ${told(el)}`);
  for (const el of all("a[href], button, summary"))
    if (!el.textContent.trim() && !named(el)) found.push(`has nothing to click on: ${told(el)}`);
  for (const el of all("th"))
    if (!el.hasAttribute("scope")) found.push(`has a heading of a table without a scope: ${told(el)}`);

  for (const el of all("[tabindex]"))
    if (el.tabIndex > 0) found.push(`has an order of its own: ${told(el)}`);
  for (const el of all("*").filter(shown)) {
    const style = getComputedStyle(el);
    const slides = ["auto", "scroll"].includes(style.overflowX) && el.scrollWidth > el.clientWidth + 1;
    const typed = ["TEXTAREA", "SELECT", "INPUT"].includes(el.tagName);
    if (slides && !typed && el.tabIndex < 0) found.push(`no keyboard can slide it: ${told(el)}`);
  }
  for (const el of all("*"))
    for (const { name } of el.attributes)
      if (name.startsWith("on")) found.push(`has a script in an attribute: ${told(el)}`);
  for (const el of all("script:not([src])"))
    if (el.type !== "application/json") found.push(`has a script within: ${told(el)}`);
  return found;

  function widest() {
    const over = all("body *").filter((el) => el.getBoundingClientRect().right > root.clientWidth + 1);
    return over.length ? told(over[over.length - 1]) : "something that cannot be seen";
  }
}
