// Work that is done a few milliseconds a frame, so that the page stays responsive.

const URGENCY = ["path", "truth", "fan", "levels", "section"];

class Tasks {
  constructor() {
    this.running = new Map();
  }

  /** Begin (or begin again) a piece of work: a generator that yields often. */
  start(name, generator) {
    this.running.set(name, generator);
  }

  stop(name) {
    this.running.delete(name);
  }

  has(name) {
    return this.running.has(name);
  }

  /** Work until the time is up, the most urgent piece first. True if anything ran. */
  work(milliseconds) {
    const end = performance.now() + milliseconds;
    let worked = false;
    for (const name of URGENCY) {
      const generator = this.running.get(name);
      while (generator && performance.now() < end) {
        worked = true;
        if (generator.next().done) {
          this.running.delete(name);
          break;
        }
      }
    }
    return worked;
  }
}
