(() => {
  const box = document.currentScript.parentElement;
  const films = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
  const canvas = box.querySelector("canvas"), pen = canvas.getContext("2d");
  const button = box.querySelector(".play"), slider = box.querySelector(".at");
  const which = box.querySelector(".which"), clock = box.querySelector(".clock");
  const size = canvas.width, trail = 40;
  let film = films[0], at = 0, playing = false, before = null;

  const place = ([x, y]) => [size / 2 + x * scale(), size / 2 - y * scale()];
  const scale = () => size / 2 / film.reach;
  const line = (points, colour, width, alpha) => {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.globalAlpha = alpha;
    pen.lineJoin = pen.lineCap = "round"; pen.beginPath();
    let down = false;
    for (const point of points) {
      if (point.includes(null)) { down = false; continue; }
      const [x, y] = place(point);
      down ? pen.lineTo(x, y) : pen.moveTo(x, y); down = true;
    }
    pen.stroke(); pen.globalAlpha = 1;
  };
  const bob = (point, colour, radius) => {
    if (point.includes(null)) return;
    pen.fillStyle = colour; pen.beginPath(); pen.arc(...place(point), radius, 0, 7); pen.fill();
  };
  const draw = () => {
    const k = Math.min(Math.floor(at), film.t.length - 1);
    pen.clearRect(0, 0, size, size);
    for (const [chain, colour, width] of
        [[film.truth, "#9A9A9A", 14], [film.predicted, "#D55E00", 6]]) {
      const past = chain.slice(Math.max(0, k - trail), k + 1).map(joint => joint.at(-1));
      line(past, colour, 3, .6); line(chain[k], colour, width, 1);
      for (const joint of chain[k].slice(1)) bob(joint, colour, width * 1.3);
    }
    bob([0, 0], "#333333", 7);
    pen.font = "26px sans-serif";
    pen.fillStyle = "#777777"; pen.fillText("truth", 24, 42);
    pen.fillStyle = "#D55E00"; pen.fillText("prediction", 24, 76);
    slider.value = k; clock.textContent = "t = " + film.t[k].toFixed(2) + " s";
  };
  const tick = now => {
    if (!playing) return;
    const rate = (film.t.length - 1) / (film.t.at(-1) - film.t[0]);
    if (before !== null) at += (now - before) / 1000 * rate;
    before = now;
    if (at >= film.t.length - 1) { at = film.t.length - 1; stop(); }
    draw(); requestAnimationFrame(tick);
  };
  const stop = () => { playing = false; before = null; button.textContent = "Play"; };
  button.onclick = () => {
    if (playing) return stop();
    if (at >= film.t.length - 1) at = 0;
    playing = true; button.textContent = "Pause"; requestAnimationFrame(tick);
  };
  slider.oninput = () => { stop(); at = +slider.value; draw(); };
  const choose = () => {
    film = films[+which.value]; slider.max = film.t.length - 1;
    at = Math.min(at, film.t.length - 1); draw();
  };
  which.onchange = choose;
  if (films.length < 2) which.parentElement.style.display = "none";
  choose();
})();
