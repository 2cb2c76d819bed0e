// The state of the page in its address, so that a link shows the same motion.

const list = (values) => Array.from(values, (v) => +v.toPrecision(10)).join(",");

function writeAddress(app) {
  if (location.protocol === "about:") return;  // inside another page's text: no address of its own
  const { path } = app.motion;
  const entries = {
    q: list(path.q[0]),
    p: list(path.p[0]),
    u: list(app.u),
    t: app.playing ? "0" : String(+app.cursor.toFixed(2)),
    speed: String(app.speed),
    state: String(app.fanState),
    code: String(app.fanCode),
    view: String(app.view),
    truth: app.shows.truth ? "1" : "0",
  };
  const text = "#" + Object.entries(entries).map(([k, v]) => `${k}=${v}`).join("&");
  if (text !== location.hash) history.replaceState(null, "", text);
}

/** What the address asks for; entries that do not fit this model are left out. */
function readAddress(app) {
  const lengths = { q: app.d, p: app.d, u: app.codes.size }, found = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [name, text] = part.split("=");
    const values = (text || "").split(",").map(Number);
    const good = text && values.length === (lengths[name] || 1) && values.every(Number.isFinite);
    if (name === "view") found.view = text;
    else if (good) found[name] = name in lengths ? values : values[0];
  }
  return found;
}
